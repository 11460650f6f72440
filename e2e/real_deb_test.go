//go:build real

// The Debian package of `make deb`, read by dpkg-deb and installed into a copy of this machine that nothing outside
// sees (make test-real REAL=deb).

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealDeb needs Debian, root and overlayfs.
func TestRealDeb(t *testing.T) {
	files, err := filepath.Glob("../bin/kvasir_*.deb")
	if err != nil || len(files) != 1 {
		t.Fatalf("the packages are %v (make deb), %v", files, err)
	}
	deb, err := filepath.Abs(files[0])
	if err != nil {
		t.Fatal(err)
	}
	info := command(t, "dpkg-deb", "--info", deb)
	arch := command(t, "dpkg", "--print-architecture")
	for _, want := range []string{"Package: kvasir\n", "Architecture: " + arch + "\n", "Depends: passwd\n", "conffiles", "postinst", "prerm", "postrm"} {
		if !strings.Contains(info, want) {
			t.Errorf("the package lacks %q:\n%s", want, info)
		}
	}
	list := command(t, "dpkg-deb", "--contents", deb)
	for _, want := range []string{
		"-rwxr-xr-x root/root", " ./usr/bin/kvasir\n", " ./usr/lib/systemd/system/kvasir.service\n", " ./etc/kvasir/kvasir.yaml\n", " ./etc/default/kvasir\n",
		" ./usr/share/bash-completion/completions/kvasir\n", " ./usr/share/zsh/vendor-completions/_kvasir\n", " ./usr/share/fish/vendor_completions.d/kvasir.fish\n",
		" ./usr/share/man/man1/kvasir.1.gz\n", " ./usr/share/man/man1/kvasir-serve.1.gz\n",
		" ./usr/share/doc/kvasir/copyright\n", " ./usr/share/doc/kvasir/licences/NOTICE\n",
	} {
		if !strings.Contains(list+"\n", want) {
			t.Errorf("the package lacks %q:\n%s", want, tail(list, 3000))
		}
	}

	// Installed, configured, used, installed again, removed and purged, in an overlay over this machine's own root that
	// ends with the process. Each line that is printed is looked at below.
	const script = `set -e
mount -t tmpfs tmpfs "$1" && mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
cp "$2" "$1/root/kvasir.deb"
rm -rf "$1/root/run/systemd/system"
chroot "$1/root" sh -ec '
  dpkg -i kvasir.deb >&2
  echo installed: $(dpkg-query -W -f "\${Status}" kvasir)
  echo user: $(getent passwd kvasir | cut -d: -f6,7)
  echo config: $(stat -c "%U:%G %a" /etc/kvasir/kvasir.yaml /etc/kvasir)
  setpriv --reuid kvasir --regid kvasir --clear-groups kvasir check --config /etc/kvasir/kvasir.yaml
  bash -n /usr/share/bash-completion/completions/kvasir
  if setpriv --reuid nobody --regid nogroup --clear-groups cat /etc/kvasir/kvasir.yaml >/dev/null 2>&1; then echo readable by nobody; fi
  echo "# mine" >> /etc/kvasir/kvasir.yaml
  dpkg -i kvasir.deb >&2
  echo kept: $(tail -1 /etc/kvasir/kvasir.yaml)
  mkdir -p /var/lib/kvasir && touch /var/lib/kvasir/cache
  dpkg -r kvasir >&2
  echo removed: $(ls /etc/kvasir /var/lib/kvasir | tr "\n" " ") $(ls /usr/bin/kvasir 2>/dev/null)
  dpkg -P kvasir >&2
  echo purged: $(ls -d /etc/kvasir /var/lib/kvasir /etc/default/kvasir /usr/share/doc/kvasir 2>/dev/null)
'`
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", t.TempDir(), deb)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	const want = `installed: install ok installed
user: /var/lib/kvasir:/usr/sbin/nologin
config: root:kvasir 640 root:kvasir 750
/etc/kvasir/kvasir.yaml: ok
kept: # mine
removed: /etc/kvasir: kvasir.yaml /var/lib/kvasir: cache
purged:
`
	got := string(out)
	// What check says beyond that it is good is not of interest here.
	var lines []string
	for _, line := range strings.Split(got, "\n") {
		if line, _, ok := strings.Cut(line, " ("); ok && strings.HasSuffix(line, ": ok") {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("it says\n%s\nwant\n%s\n%s", got, want, stderr.String())
	}
}
