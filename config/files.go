// Files: what is read of the files that make up a configuration, each bounded and remembered.

package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/knadh/koanf/providers/file"
)

// Contents are the SHA-256 of files as they were last read, by path.
type Contents map[string][sha256.Size]byte

// readConfig reads a configuration file with koanf's provider. That reads without
// a bound, so it is not given what is too large to be a configuration, such as a
// model's weights named by mistake, nor what may never end, such as a pipe. Of
// those only MaxRead bytes are read, and parseDocument says that it is too large.
//
// koanf's YAML parser is not used: it decodes into values before anybody knows
// what a key wants, and the text is lost by then. A model 4.10 would be asked for
// as 4.1, a header 010 sent as 8, and one duplicate key would hide every other
// error. So the decoder takes the values from YAML's nodes, which it has to walk
// for their places anyway; a test compares both (twin_test.go).
func readConfig(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		return ReadBounded(path)
	}
	return file.Provider(path).ReadBytes()
}

// MaxRead bounds what is read of any file, in bytes: one more than the largest
// kind, a file of certificates, may have, so that a larger one is noticed. It is
// the same for all files, so that a watcher reads as much as Load has.
const MaxRead = maxPEMFile + 1

// bare is an error of package os without the operation and the path, where
// the message says both already.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// ReadBounded reads at most MaxRead bytes of a file, which may be a pipe.
func ReadBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxRead))
}

// maxSecretFile bounds a key_file, in bytes.
const maxSecretFile = 16 << 10

// secret is the content of a key_file without the end of its line.
func (b *loader) secret(path Path) (string, error) {
	data, err := b.readBytes(path, maxSecretFile)
	if err != nil && b.isPath(path) {
		return "", fmt.Errorf("cannot read the file %q: %w", path, err)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the file (its name is not shown, as it may be the key itself): %w", err)
	}
	secret := strings.TrimRight(string(data), "\r\n")
	switch {
	case secret == "":
		return "", errors.New("the file is empty")
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the file must hold one line of visible ASCII: the key and nothing else")
	}
	return secret, nil
}

// keyExtension is how names of files with a key end, and keys do not.
var keyExtension = regexp.MustCompile(`\.(key|txt|token|secret|pem|pass|password)$`)

// isPath says whether what should name a file with a key is surely no key that was written there by
// mistake, which must not be shown. A key is taken for the name of a file beside the configuration or,
// with slashes in it, of one in a directory that is not there or at the root; its letters are of all
// kinds, where those of names are small.
func (b *loader) isPath(path Path) bool {
	if keyExtension.MatchString(string(path)) {
		return true
	}
	dir, name := filepath.Split(string(path))
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && filepath.Dir(dir) != dir && dir != "." && dir != filepath.Clean(b.dir) && keyName.MatchString(name)
}

// keyName is a name that somebody gives a file with a key in a directory for such files, as Docker's
// and Kubernetes' secrets: openai-key. Letters alone, since keys have digits.
var keyName = regexp.MustCompile(`^[a-z]+([._-][a-z]+)*$`)

// read reads a file of at most limit bytes.
func (b *loader) read(path Path, limit int64) ([]byte, error) {
	data, err := b.readBytes(path, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read file %q: %w", path, err)
	}
	return data, nil
}

// readBytes is read with errors that do not name the file. It remembers what
// was read.
func (b *loader) readBytes(path Path, limit int64) ([]byte, error) {
	data, err := b.readFile(string(path))
	b.files[string(path)] = sha256.Sum256(data)
	if err != nil && strings.Contains(string(path), "~/") {
		return nil, fmt.Errorf("%w; ~ means nothing here, write ${HOME}", bare(err))
	}
	if err != nil {
		return nil, bare(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %s", Size(limit))
	}
	return data, nil
}
