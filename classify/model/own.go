// Own weights: heads out of a directory, in place of the embedded ones.

package model

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxOwn bounds a file of own weights, in bytes: the embedded ones have 1 to 7 MiB.
const maxOwn = 64 << 20

// ErrNoWeights is in what Own says of a directory that has none of the files it looks for.
var ErrNoWeights = errors.New("is in it")

// An OwnFile is a file of own weights for something beside the model. Open gets what it holds, checked
// as far as all weights are.
type OwnFile struct {
	Name string
	Open func(m *Model, data []byte) error
}

// ownFiles are the files that may be replaced, by the names that scripts/train gives them.
var ownFiles = []OwnFile{
	{"heads.safetensors", (*Model).openCategory},
	{"guard.safetensors", (*Model).openGuard},
}

// noWeights is an ErrNoWeights that names the files.
func noWeights(files []OwnFile) error {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return fmt.Errorf("none of %s %w", strings.Join(names, ", "), ErrNoWeights)
}

// Own returns the embedded model with those of its heads replaced that a directory has files of: heads.safetensors
// (the category) and guard.safetensors, as scripts/train writes them; others are looked for beside them. Tokens and
// encoder are always the embedded ones, so that embeddings stay comparable with those that were kept. The files are
// read once. Errors: ErrNoWeights, a file that cannot be read, and one that was trained for another encoder.
func Own(dir string, others ...OwnFile) (*Model, error) {
	standard, err := Embedded()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, unusable("in "+strconv.Quote(dir), err)
	}
	m, found := *standard, false
	files := slices.Concat(ownFiles, others)
	for _, f := range files {
		data, err := readOwn(filepath.Join(dir, f.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = checkOwn(data)
		}
		if err == nil {
			err = f.Open(&m, data)
		}
		if err != nil {
			return nil, unusable(strconv.Quote(filepath.Join(dir, f.Name)), err)
		}
		found = true
	}
	if !found {
		return nil, unusable("in "+strconv.Quote(dir), noWeights(files))
	}
	return &m, nil
}

func unusable(which string, err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err // the path is said already
	}
	return fmt.Errorf("cannot use the weights %s: %w", which, err)
}

// readOwn reads a file of at most maxOwn bytes.
func readOwn(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxOwn {
		return nil, fmt.Errorf("it is no file of at most %d MiB", maxOwn>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxOwn))
}

// mostOwn is how large a number of own weights may be, so that no product of them is beyond what a float32 can be,
// and every score is a number.
const mostOwn = 1e6

// checkOwn finds what is wrong with own weights whatever they are for.
func checkOwn(file []byte) error {
	t, err := OpenTensors(file)
	if err != nil {
		return err
	}
	if of := t.meta["encoder"]; of != EncoderHash {
		return fmt.Errorf("it was trained for the encoder %q, this one is %q: train it anew with this version of Kvasir", of, EncoderHash)
	}
	for name, e := range t.index {
		if e.DType != "F32" || len(e.Shape) == 0 {
			continue
		}
		values, err := t.Float32s(name, e.Shape...)
		if err != nil {
			return err
		}
		for i, v := range values {
			if math.Abs(float64(v)) > mostOwn {
				return fmt.Errorf("value %d of tensor %q is %g, beyond %g", i, name, v, float64(mostOwn))
			}
		}
	}
	return nil
}
