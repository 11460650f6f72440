// OpenAI servers of which nothing else is known, such as llama.cpp, Ollama and gateways.

package upstream

var openAI = dialect{name: "openai"}
