// Discovery: what no single key shows of a source of workers.

package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvasir/discovery"
	"kvasir/discovery/etcd"
	"kvasir/wording"
)

// Entry is the source as it looks for workers, without what these are told.
func (d *Discovery) Entry() discovery.Entry {
	e := discovery.Entry{
		Kind: d.Kind, Path: string(d.Path), Name: d.Name, Scheme: d.Scheme, Refresh: d.Refresh, Grace: d.Grace,
		Namespace: d.Namespace, Selector: d.Selector, InferencePool: d.Pool, Kubeconfig: string(d.Kubeconfig),
		Etcd: etcd.Options{Endpoints: d.Endpoints, User: d.User}, Prefix: d.Prefix, Frontend: d.Frontend,
	}
	var err error
	if e.Port, err = strconv.Atoi(d.Port); err != nil {
		e.Port, e.PortName = 0, d.Port
	}
	return e
}

// discovery finds what is wrong with the sources of workers.
func (v *validation) discovery(sources []Discovery) {
	names := map[string]string{}
	for i := range sources {
		d := &sources[i]
		path := fmt.Sprintf("discovery[%d]", i)
		if d.Kind == "" {
			v.add("is missing; it is one of "+wording.List(discovery.KindNames(), "and"), path+".kind")
			continue
		}
		v.ofAnotherKind(path, d)
		e := d.Entry()
		if key, wrong := discovery.Check(&e); wrong != "" {
			v.add(wrong, path+"."+key)
		} else {
			v.once(names, e.String(), path, "is the source of another entry, too")
		}
		v.modelNames(path+".models", d.Models, false)
		v.pair(path+".tls", d.TLS.Cert, d.TLS.Key)
		if d.TLS.Insecure && d.TLS.CA != "" {
			v.add("turns off the check that tls.ca is for; set only one of the two", path+".tls.insecure")
		}
		if d.TLS != (PeerTLS{}) && slices.Contains(discovery.Keys(d.Kind), "scheme") && d.Scheme == "http" {
			v.add("has no effect on workers that are asked by http; set scheme: https", path+".tls")
		}
		if d.ofEtcd() {
			v.etcd(path, d)
		}
	}
}

// ofEtcd says whether the source asks etcd, or might: the keys of TLS are for that, then.
func (d *Discovery) ofEtcd() bool {
	return slices.Contains(discovery.Keys(d.Kind), "endpoints")
}

// etcd checks how a source reaches etcd.
func (v *validation) etcd(path string, d *Discovery) {
	if d.TLS != (PeerTLS{}) && !slices.ContainsFunc(d.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https:") }) {
		v.add("has no effect, because no endpoint begins with https://", path+".tls")
	}
	switch {
	case d.User != "" && d.PasswordFile == "":
		v.add("has no password; set "+path+".password_file", path+".user")
	case d.User == "" && d.PasswordFile != "":
		v.add("has no user; set "+path+".user", path+".password_file")
	}
	if d.Frontend == "" {
		return
	}
	if err := CheckURL(d.Frontend); err != nil {
		v.add(err.Error(), path+".frontend")
	}
}

// ofAnotherKind wants no key to be set that sources of this kind do not have.
func (v *validation) ofAnotherKind(path string, d *Discovery) {
	has := map[string]bool{}
	for _, key := range discovery.Keys(d.Kind) {
		has[key] = true
	}
	knownKeys.child("discovery").Elem.values(reflect.ValueOf(*d), func(k *Key, value any) {
		if has[k.Name] || !discovery.OwnKey(k.Name) || value == k.value || reflect.ValueOf(value).IsZero() {
			return
		}
		v.add(fmt.Sprintf("is no key of kind %s; it has %s", d.Kind, wording.List(discovery.Keys(d.Kind), "and")), path+strings.TrimPrefix(k.path, "discovery[]"))
	})
}

// ownKey is a key of the first source in a message.
var ownKey = regexp.MustCompile(`discovery\[0\]\.(?:tls\.)?([a-z_]+)`)

// NewSource reads what the files hold that a source names which stands alone. The error
// names a key as the flag of its name: --password-file.
func NewSource(d Discovery) (Credentials, error) {
	v := &validation{}
	v.discovery([]Discovery{d})
	b := &loader{config: &Config{Discovery: []Discovery{d}}, files: Contents{}, readFile: ReadBounded}
	shown := b.sources()
	for _, found := range append(v.found, b.found...) {
		return Credentials{}, errors.New(ownKey.ReplaceAllStringFunc(found.paths[0]+": "+found.text, func(key string) string {
			return "--" + strings.ReplaceAll(ownKey.FindStringSubmatch(key)[1], "_", "-")
		}))
	}
	return shown[0], nil
}
