//go:build linux

// nginx twice: the fast worker of the throughput measurement, and the proxy to compare with.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// startNginx runs nginx in the foreground, with every path under dir, so that it needs no special
// rights and leaves no files elsewhere.
func startNginx(dir, name, servers string) (*process, error) {
	path, err := findTool("nginx")
	if err != nil {
		return nil, fmt.Errorf("cannot find nginx: %w", err)
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // otherwise its workers could not read files under dir
	}
	limit, err := fileLimit()
	if err != nil {
		return nil, err
	}
	connections := min(limit-64, 32768)
	config := user + fmt.Sprintf(`daemon off;
worker_processes %d;
worker_rlimit_nofile %d;
pid %s.pid;
error_log stderr warn;
events { worker_connections %d; }
http {
access_log off;
default_type application/json;
keepalive_timeout 3600s;
keepalive_requests 1000000000;
client_body_temp_path %[5]s; proxy_temp_path %[5]s; fastcgi_temp_path %[5]s; uwsgi_temp_path %[5]s; scgi_temp_path %[5]s;
%[6]s
}
`, runtime.NumCPU(), limit, filepath.Join(dir, name), connections, filepath.Join(dir, name+"-temp"), servers)
	file := filepath.Join(dir, name+".conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, fmt.Errorf("cannot write config of nginx: %w", err)
	}
	return startProcess(dir, name, nil, path, "-e", "stderr", "-p", dir, "-c", file)
}

// workerConfig returns the configuration of a worker that answers every chat completion with the
// same 1 KB, as fast as is possible on this machine.
func workerConfig(address string) string {
	return fmt.Sprintf(`server {
listen %s reuseport backlog=4096;
location = /v1/chat/completions { return 200 '%s'; }
location = /v1/models { return 200 '%s'; }
location = /health { return 200 '{}'; }
location = /bench/served { stub_status; }
}`, address, completion, modelList())
}

// proxyConfig returns a careful nginx configuration for an engine: keep-alive connections to the
// worker, and unbuffered answers. For answers that are not streamed, buffering stays on, as by
// default: the comparison is with the faster nginx.
func proxyConfig(address, worker string, buffered bool) string {
	buffering := "off"
	if buffered {
		buffering = "on"
	}
	return fmt.Sprintf(`upstream worker { server %s; keepalive 256; keepalive_requests 1000000000; keepalive_timeout 3600s; }
server {
listen %s reuseport backlog=4096;
location / {
  proxy_pass http://worker;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_buffering %s;
  proxy_read_timeout 600s;
}
}`, worker, address, buffering)
}
