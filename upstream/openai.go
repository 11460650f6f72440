// OpenAI servers of which nothing else is known, such as Ollama, LMDeploy and gateways.

package upstream

var openAI = dialect{name: "openai", also: []string{"ollama", "lmdeploy"}}
