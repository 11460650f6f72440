//go:build real

// Pods that come and go at a real API server.

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"kvasir/discovery/kubetest"
)

// flappingKube are pods that are ready all the time, of a Service that says otherwise of every other one. The controller
// of EndpointSlices gathers such changes for a second; this one does not.
func flappingKube(t *testing.T, _ []string) flapper {
	s := kubetest.Start(t)
	s.Namespace(t, "team")
	file := s.Kubeconfig(t, "team", s.Account(t, "team", "kvasir", kubeRules...))
	var pods []*kubeWorker
	for i := range flapping {
		pods = append(pods, startKubeWorker(t, s, fmt.Sprintf("vllm-%d", i), soakAnswer))
	}
	kubeEndpoints(t, s, pods)
	var made struct {
		Items []struct{ Metadata struct{ Name, UID string } }
	}
	if err := json.Unmarshal(s.Do(t, http.MethodGet, "/api/v1/namespaces/team/pods", nil), &made); err != nil {
		t.Fatal(err)
	}
	const slice = "/apis/discovery.k8s.io/v1/namespaces/team/endpointslices/vllm-abcde"
	return flapper{
		entry: fmt.Sprintf("kind: kubernetes, namespace: team, selector: app=vllm, port: http, kubeconfig: '%s', models: [m]", file),
		list: func(t *testing.T, now []bool) {
			var all []map[string]any
			for i, pod := range made.Items {
				all = append(all, map[string]any{
					"addresses": []string{fmt.Sprintf("192.0.2.%d", i+1)}, "conditions": map[string]bool{"ready": now[i], "serving": now[i]},
					"targetRef": map[string]string{"kind": "Pod", "namespace": "team", "name": pod.Metadata.Name, "uid": pod.Metadata.UID},
				})
			}
			s.Do(t, http.MethodPatch, slice, map[string]any{"endpoints": all})
		},
	}
}

// TestRealKubeFlapping is TestSoakFlapping with pods.
func TestRealKubeFlapping(t *testing.T) { soakFlapping(t, flapperKind{"kubernetes", flappingKube}) }
