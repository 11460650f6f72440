// Planner: whether there is one, and what no single key shows of it.

package config

import (
	"fmt"
	"reflect"
	"time"

	"kvasir/kvroute"
	"kvasir/planner/scale"
	"kvasir/wording"
)

// idlePlanner is the section where nobody sets anything.
var idlePlanner = Planner{
	Mode: "auto", TargetTTFT: 500, TargetITL: 50, Share: 0.95, Min: 1, Max: 64, Window: 10 * time.Minute, Interval: time.Minute, StartTime: time.Minute,
	DownAfter: 5 * time.Minute, MostPlayed: 5000, Budget: 20 * time.Second, Memory: 16 << 20, CommandTimeout: time.Minute,
}

// PlannerMode is planner.mode; auto is advise if another key of planner differs from its default, else off.
func (c *Config) PlannerMode() string {
	p := c.Planner
	if p.Mode != "auto" {
		return p.Mode
	}
	if len(p.Command) == 0 {
		p.Command = nil
	}
	if reflect.DeepEqual(p, idlePlanner) {
		return "off"
	}
	return "advise"
}

// Targets are those that are named, by role; one that has another form is left out.
func (k *PlannerKubernetes) Targets() scale.Targets {
	targets := scale.Targets{}
	for role, text := range k.byRole() {
		if t, err := scale.Parse(*text); err == nil {
			targets[role] = t
		}
	}
	return targets
}

func (k *PlannerKubernetes) byRole() map[kvroute.Role]*string {
	return map[kvroute.Role]*string{kvroute.Both: &k.Both, kvroute.Prefill: &k.Prefill, kvroute.Decode: &k.Decode}
}

// On says whether anything is done in Kubernetes.
func (k *PlannerKubernetes) On() bool { return k.Lease != "" || len(k.Targets()) > 0 }

// plannerKubernetes checks what is scaled, and where.
func (v *validation) plannerKubernetes(k *PlannerKubernetes) {
	const at = "planner.kubernetes."
	for role, text := range k.byRole() {
		if _, err := scale.Parse(*text); *text != "" && err != nil {
			v.add(err.Error(), at+role.String())
		}
	}
	if k.Both != "" && k.Prefill+k.Decode != "" {
		v.add("stands beside targets for prefill or decode; workers do both, or one of the two", at+"both")
	}
	if k.Both == "" && k.Prefill != "" && k.Prefill == k.Decode {
		v.add("is planner.kubernetes.prefill as well; each role has replicas of its own", at+"decode")
	}
	for key, name := range map[string]string{"namespace": k.Namespace, "lease": k.Lease} {
		if name != "" && !scale.IsName(name) {
			v.add("is no name of Kubernetes: small letters, digits, - and .", at+key)
		}
	}
	if !k.On() && *k != (PlannerKubernetes{}) {
		v.add("names nothing to scale; set both, prefill or decode, such as deployment/vllm", "planner.kubernetes")
	}
}

// keda checks the listener for KEDA.
func (v *validation) keda(c *Config) {
	const at = "planner.keda."
	k := &c.Planner.KEDA
	v.pair(at+"tls", k.TLS.Cert, k.TLS.Key)
	if k.TLS.ClientCA != "" && k.TLS.Cert == "" {
		v.add("needs planner.keda.tls.cert and planner.keda.tls.key", at+"tls.client_ca")
	}
	if k.Listen == "" {
		if k.TLS != (TLS{}) {
			v.add("has no listener; set planner.keda.listen, such as :9091", at+"tls")
		}
		return
	}
	if err := CheckListen(k.Listen); err != nil {
		v.add(err.Error(), at+"listen")
		return
	}
	for path, other := range map[string]string{"server.listen": c.Server.Listen, "server.admin": c.Server.Admin} {
		if other != "" && sameListen(k.Listen, other) {
			v.add(fmt.Sprintf("%s is the address of %s, too", wording.Quote(k.Listen), path), at+"listen", path)
		}
	}
	if c.PlannerMode() == "off" {
		v.add("answers by the plan, and planner.mode is off", at+"listen", "planner.mode")
	}
}

// planner finds bounds that contradict each other, and a command that is missing or never run.
func (v *validation) planner(c *Config) {
	p := &c.Planner
	v.plannerKubernetes(&p.Kubernetes)
	v.keda(c)
	if p.Min > p.Max {
		v.add("must not be above planner.max_workers", "planner.min_workers", "planner.max_workers")
	}
	switch mode := c.PlannerMode(); {
	case mode == "apply" && len(p.Command) == 0 && len(p.Kubernetes.Targets()) == 0:
		v.add("apply runs planner.command, or scales what planner.kubernetes names: name one of the two, or advise only", "planner.mode", "planner.command")
	case len(p.Command) > 0 && len(p.Kubernetes.Targets()) > 0:
		v.add("stands beside targets of planner.kubernetes; there is one of the two", "planner.command", "planner.kubernetes")
	case mode != "apply" && len(p.Command) > 0:
		v.add("is run by planner.mode: apply only, which is "+wording.Quote(mode), "planner.command", "planner.mode")
	case len(p.Command) > 0 && p.Command[0] == "":
		v.add("is empty: it is the program to run", "planner.command[0]")
	}
}
