//go:build !linux || !cgo

// Without: a helper built without cgo.

package main

import (
	"errors"
	"time"
)

func watch(time.Duration, string) error {
	return errors.New("cannot ask a driver: built without cgo, or not for Linux")
}
