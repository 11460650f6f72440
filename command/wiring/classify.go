// Classify: guards, signals and decisions to what the classifier and the proxy are told.

package wiring

import (
	"strconv"

	"kvasir/classify"
	"kvasir/config"
	"kvasir/proxy"
)

// actions are the values of the keys named action.
var actions = map[string]classify.Action{
	"off": classify.Off, "annotate": classify.Annotate, "redact": classify.Redact, "block": classify.Block,
}

// Classify is what the classifier is told.
func Classify(c *config.Config) classify.Options {
	k := &c.Classify
	o := classify.Options{
		Timeout:     k.Timeout,
		Threads:     k.Threads,
		Models:      string(k.Models),
		SecondStage: k.SecondStage == "on",
		Category: classify.CategoryOptions{
			Threshold: k.Category.Threshold, Model: config.OwnModel(k.Category.Model, k.Category.Labels, k.Category.Combine),
		},
		Embedding: config.OwnModel(k.Embedding.Model, nil, ""),
		Jailbreak: classify.GuardOptions{
			Action: actions[k.Jailbreak.Action], Threshold: k.Jailbreak.Threshold, AllowOnError: k.Jailbreak.OnError == "allow",
			Model: config.OwnModel(k.Jailbreak.Model, k.Jailbreak.Labels, k.Jailbreak.Combine),
		},
		PII: classify.PIIOptions{
			GuardOptions: classify.GuardOptions{
				Action: actions[k.PII.Action], Threshold: k.PII.Threshold, AllowOnError: k.PII.OnError == "allow",
				Model: config.OwnModel(k.PII.Model, k.PII.Labels, k.PII.Combine),
			},
			Allow: allowed(&k.PII),
		},
		Priority: c.DecisionOrder == "priority",
	}
	for i := range c.Signals {
		o.Signals = append(o.Signals, c.Signals[i].Options())
	}
	for i := range c.Decisions {
		o.Decisions = append(o.Decisions, decision(&c.Decisions[i]))
	}
	return o
}

// harmless are the types of personal data that may pass where classify.pii.allow
// is not set: nobody shall be refused for saying who they are. Numbers of
// accounts, of identity documents, and secrets are not among them. Who has them
// replaced is refused nothing, and wants all types replaced.
var harmless = []string{
	"PERSON", "GPE", "ORGANIZATION", "NRP", "TITLE", "AGE", "DATE_TIME", "EMAIL_ADDRESS", "PHONE_NUMBER",
	"STREET_ADDRESS", "ZIP_CODE", "DOMAIN_NAME", "IP_ADDRESS", "MAC_ADDRESS", "EU_VAT",
}

// allowed is what classify.pii.allow says; an empty list allows nothing.
func allowed(p *config.PII) []string {
	if p.Allow == nil && p.Action != "redact" {
		return harmless
	}
	return p.Allow
}

// Guards are what the proxy does where a guard has found something.
func Guards(c *config.Config) proxy.Guards {
	return proxy.Guards{
		JailbreakStatus: status(c.Classify.Jailbreak.Status),
		PIIStatus:       status(c.Classify.PII.Status),
		Restore:         c.Classify.PII.Restore,
		ClientTemplates: c.Guards.ClientTemplates == "allow",
	}
}

// status is what the status of a block is by its name; 0: auto.
func status(name string) int {
	n, _ := strconv.Atoi(name)
	return n
}

func decision(d *config.Decision) classify.Decision {
	reasoning := d.Reasoning
	switch reasoning {
	case "true":
		reasoning = "on"
	case "false":
		reasoning = "off"
	}
	return classify.Decision{
		Name: d.Name, Priority: d.Priority, When: d.When, Explicit: d.AppliesTo == "all",
		Model: d.Model, SystemPrompt: d.SystemPrompt, InsertPrompt: d.SystemPromptMode == "insert", Reasoning: reasoning,
		AllowPII: d.PII.Allow, CacheThreshold: d.Cache.Threshold, CacheOff: !d.Cache.Enabled, Refuse: d.Refuse,
		MaxTokens: d.MaxTokens, MaxTemperature: d.MaxTemperature, CapTemperature: d.MaxTemperature > 0, MaxChoices: d.MaxChoices,
	}
}
