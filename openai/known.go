// Known names: the members that are known by name, and keys that differ from one of those only by case.

package openai

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"kvasir/header"
)

// memberNames are the members that this package reads at any level of any body,
// and common ones that engines read. Readers written in Go (Ollama) ignore the case
// of a key, and the last of two wins: with "Model" behind "model" they would take
// another model than is read here.
var memberNames = namesIn(`
	model stream stream_options include_usage continuous_usage_stats user n seed temperature cache_salt
	max_tokens max_completion_tokens max_output_tokens reasoning_effort reasoning effort response_format
	messages prompt input system instructions suffix query queries text_1 text_2 data_1 data_2 documents items
	previous_input_messages prediction functions tools vllm_xargs chat_template chat_template_kwargs enable_thinking thinking
	prompt_embeds input_embeds inputs_embeds prompt_token_ids input_ids token_ids prompt_ids input_token_ids prompt_tokens
	stop_token_ids allowed_token_ids logprob_token_ids bad_words_ids token_ids_logprob suppress_tokens begin_suppress_tokens sigmas timesteps
	metadata stop stop_sequences stop_regex logit_bias safety_identifier prompt_cache_key mcp_servers custom_logit_processor
	image images mask ref_audio input_reference
	guided_json guided_regex guided_choice guided_grammar structured_outputs structural_tag regex ebnf json_schema text output_config output_format
	role content refusal reasoning_content function_call tool_calls id tool_call_id audio annotations name type
	title context tool_use_id source data image_url input_image image_embeds input_audio audio_url audio_embeds
	video video_url input_video file file_data file_id file_url filename url uuid detail media_type format
	cache_control citations logprobs signature encrypted_content extra_content
	function custom arguments call_id description parameters strict server_url authorization headers
	summary code results output result
	nvext router_config_override backend_instance_id prefill_worker_id decode_worker_id
	overlap_score_credit overlap_score_weight kv_overlap_score_weight prefill_load_scale router_temperature
	kv_transfer_params ec_transfer_params disaggregated_params request_id rid routed_dp_rank disagg_prefill_dp_rank data_parallel_rank
	top_p top_k min_p best_of echo frequency_penalty presence_penalty repetition_penalty top_logprobs tool_choice
	parallel_tool_calls store service_tier modalities voice language negative_prompt tokens
	previous_response_id conversation background include web_search_options container session_params
	continue_final_message add_generation_prompt prompt_logprobs use_beam_search
`)

// templateNames are the members of chat_template_kwargs that are known. The rest
// is the template's, which may tell keys apart by their case.
var templateNames = namesIn(`chat_template enable_thinking thinking`)

// extraNames are the members of vllm_xargs that are known: those that are for
// routers only. The rest is an extension's.
var extraNames = namesIn(`
	kv_transfer_params ec_transfer_params disaggregated_params nvext router_config_override
	routed_dp_rank disagg_prefill_dp_rank data_parallel_rank
`)

type nameSet map[string]struct{}

func namesIn(list string) nameSet {
	set := nameSet{}
	for _, name := range strings.Fields(list) {
		set[name] = struct{}{}
	}
	return set
}

// maxNameBytes is the length of the longest name that is compared, written with
// letters of three bytes.
const maxNameBytes = 3 * 64

// otherCase returns the known name from which key differs by case alone; "" if
// there is none, or if key is that name. Nearly every key is ASCII in lower case,
// and costs one look at its bytes.
func (set nameSet) otherCase(key []byte) string {
	if isLower(key) || len(key) > maxNameBytes {
		return ""
	}
	var folded [maxNameBytes]byte
	name := appendFolded(folded[:0], key)
	if bytes.Equal(name, key) {
		return ""
	}
	if _, known := set[string(name)]; known || isRouterField(name) {
		return string(name)
	}
	return ""
}

// isLower says whether the key has no letter that appendFolded changes.
func isLower(key []byte) bool {
	for _, c := range key {
		if c-'A' <= 'Z'-'A' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendFolded appends key in lower case, as a reader sees it that ignores case.
// Besides the capitals there are letters beyond ASCII that some reader takes for
// an ASCII one: those that Unicode folds to it, as Go's encoding/json does, and the
// Turkish i, which readers in Java and .NET take for i.
func appendFolded(dst, key []byte) []byte {
	for len(key) > 0 {
		r, n := utf8.DecodeRune(key)
		switch {
		case r >= 'A' && r <= 'Z':
			dst = append(dst, byte(r)|0x20)
		case r == 'ſ': // U+017F, the long s
			dst = append(dst, 's')
		case r == '\u212A': // the Kelvin sign
			dst = append(dst, 'k')
		case r == 'İ' || r == 'ı': // U+0130, U+0131
			dst = append(dst, 'i')
		default:
			dst = append(dst, key[:n]...)
		}
		key = key[n:]
	}
	return dst
}

// refuse stops at a key that differs from a known name by case alone, and says
// whether it did.
func (set nameSet) refuse(s *scanner, m *members) bool {
	name := set.otherCase(m.key)
	if name != "" {
		s.stop(faultCase, m.start(), name)
	}
	return name != ""
}

// skipUnknown steps over the value of a member that is not known by its name.
func skipUnknown(s *scanner, m *members) {
	if !memberNames.refuse(s, m) {
		s.skip()
	}
}

// namesModel says whether a member of this name may make another model answer: it
// names an adapter, or is what gateways (LiteLLM, OpenRouter) take for the model.
// Engines and their forks have a dozen names for adapters: lora_path (SGLang),
// lora_request (TensorRT-LLM), lora (llama.cpp), adapter_id, loraPath, alora. So
// one word in the name that is lora or adapter suffices; words end where letters do
// and before a capital.
func namesModel(key []byte) bool {
	for start, i := 0, 0; i <= len(key); i++ {
		capital := i < len(key) && i > start && key[i]-'A' <= 'Z'-'A' && key[i-1]-'a' <= 'z'-'a'
		if i < len(key) && isLetter(key[i]) && !capital {
			continue
		}
		if isAdapter(key[start:i]) {
			return true
		}
		if start = i + 1; capital {
			start = i
		}
	}
	if len(key) > maxModelMember {
		return false
	}
	var plain [maxModelMember]byte
	name := plain[:0]
	for _, c := range key {
		if c != '_' && c != '-' {
			name = append(name, c|0x20)
		}
	}
	_, known := modelMembers[string(name)]
	return known
}

// isAdapter says whether a word means an adapter of a model.
func isAdapter(word []byte) bool {
	if len(word) < len("lora") || len(word) > len("lorarequest") {
		return false
	}
	for _, name := range adapterWords {
		if header.Is(word, name) {
			return true
		}
	}
	return false
}

var adapterWords = [...]string{
	"lora", "loras", "alora", "qlora", "peft", "adapter", "adapters",
	"loraid", "loraname", "lorapath", "lorapaths", "loramodel", "lorarequest", "loraadapter",
}

// modelMembers are the members, without _ and -, by which gateways take another
// model than that of "model", or another server.
var modelMembers = namesIn(`
	models fallbacks fallbackmodels modelid modellist modelgroup deploymentid deployment engine
	userconfig apibase baseurl extrabody contextwindowfallbacks contentpolicyfallbacks
`)

// maxModelMember is longer than any of them, _ and - included.
const maxModelMember = 32

func isLetter(c byte) bool { return c|0x20-'a' <= 'z'-'a' }

// isTemplate says whether a member is called chat_template, in any case and with
// any of _ - . between its letters, or nothing.
func isTemplate(key []byte) bool {
	const name = "chattemplate"
	at := 0
	for _, c := range key {
		switch {
		case c == '_' || c == '-' || c == '.':
		case at < len(name) && c|0x20 == name[at]:
			at++
		default:
			return false
		}
	}
	return at == len(name)
}

// isTokenIDs recognises the names that engines give a prompt made of token ids.
func isTokenIDs(key []byte) bool {
	switch string(key) {
	case "input_ids", "prompt_token_ids", // SGLang, TensorRT-LLM: in place of messages and prompt
		"token_ids", "prompt_ids", "input_token_ids", "prompt_tokens":
		return true
	}
	return false
}
