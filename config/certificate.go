// Certificate: the files of certificates, keys and authorities, of our listener and of peers.

package config

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxPEMFile bounds a certificate or key file, in bytes; the system's bundle
// of all authorities has about 220 KiB.
const maxPEMFile = 4 << 20

// listenerTLS reads the files of the TLS of a listener; nil if it is off or they are bad.
func (b *loader) listenerTLS(path string, c TLS, protocol string) *tls.Config {
	if c.Cert == "" {
		return nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{protocol}}
	cert, _, err := b.certificate(c.Cert, c.Key)
	if err != nil {
		b.add(path+".cert", err)
		return nil
	}
	conf.Certificates = []tls.Certificate{cert}
	if c.ClientCA != "" {
		pool, _, err := b.authorities(c.ClientCA)
		if err != nil {
			b.add(path+".client_ca", err)
			return nil
		}
		conf.ClientCAs, conf.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return conf
}

// peerTLS is the TLS of one worker or of Milvus, and a name that is the same
// exactly when the settings and the content of the files are.
func (b *loader) peerTLS(path string, c PeerTLS) (*tls.Config, string) {
	if c == (PeerTLS{}) {
		return nil, ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %v\n", c.ServerName, c.Insecure)
	conf := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.ServerName,
		InsecureSkipVerify: c.Insecure, // asked for by tls.insecure
	}
	if c.CA != "" {
		pool, pem, err := b.authorities(c.CA)
		if err != nil {
			b.add(path+".ca", err)
		}
		conf.RootCAs = pool
		fmt.Fprintf(sum, "ca %d %s\n", len(pem), pem)
	}
	if c.Cert != "" {
		cert, pem, err := b.certificate(c.Cert, c.Key)
		if err != nil {
			b.add(path+".cert", err)
		}
		conf.Certificates = []tls.Certificate{cert}
		fmt.Fprintf(sum, "cert %d %s\n", len(pem), pem)
	}
	return conf, hex.EncodeToString(sum.Sum(nil)[:16])
}

// certificate reads a certificate chain and its key, and gives their bytes too.
func (b *loader) certificate(certFile, keyFile Path) (tls.Certificate, []byte, error) {
	certPEM, err := b.read(certFile, maxPEMFile)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	keyPEM, err := b.read(keyFile, maxPEMFile)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("cannot use certificate %q with key %q: %s", certFile, keyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return cert, bytes.Join([][]byte{certPEM, keyPEM}, nil), nil
}

// authorities reads a file of CA certificates, and gives its bytes too.
func (b *loader) authorities(file Path) (*x509.CertPool, []byte, error) {
	pem, err := b.read(file, maxPEMFile)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("file %q holds no PEM certificate", file)
	}
	return pool, pem, nil
}
