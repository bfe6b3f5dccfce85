// Renders prompts with llama.cpp's `common_chat_templates_apply`, as llama-server does with `--jinja`.
// Each line of standard input is a JSON object with `template`, `bos`, `eos`, `now` and `request`.
// Each line of standard output is a JSON object with `prompt` or `error`.
#include "chat.h"
#include "json.h"

#include <chrono>
#include <ctime>
#include <iostream>

// These replace the functions of the system, so that the date in a prompt is the given one.
static std::time_t now;
std::chrono::system_clock::time_point std::chrono::system_clock::now() noexcept { return from_time_t(::now); }
extern "C" std::time_t time(std::time_t * out) noexcept {
    if (out) {
        *out = now;
    }
    return now;
}

static std::string render(const common_json & job) {
    const auto & request = job.at("request");
    common_chat_templates_inputs inputs;
    inputs.messages         = common_chat_msgs_parse_oaicompat(request.at("messages"));
    inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
    inputs.parallel_tool_calls = true;
    if (request.contains("tools")) {
        inputs.tools = common_chat_tools_parse_oaicompat(request.at("tools"));
    }
    if (request.contains("reasoning")) {
        // The switches of templates besides `enable_thinking`, which clients of llama-server pass themselves.
        const bool reasoning   = request.at("reasoning").get<bool>();
        inputs.enable_thinking = reasoning;
        inputs.chat_template_kwargs["thinking"]      = reasoning ? "true" : "false";
        inputs.chat_template_kwargs["thinking_mode"] = reasoning ? "\"enabled\"" : "\"disabled\"";
        if (!reasoning) {
            inputs.chat_template_kwargs["thinking_budget"] = "0";
        }
    }
    if (request.contains("isContinued")) {
        inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
        inputs.add_generation_prompt  = false;
    }
    const auto templates = common_chat_templates_init(nullptr, job.at("template").get<std::string>(),
                                                      job.at("bos").get<std::string>(), job.at("eos").get<std::string>());
    return common_chat_templates_apply(templates.get(), inputs).prompt;
}

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        auto reply = common_json::object();
        try {
            const auto job  = common_json::parse(line);
            now             = job.at("now").get<int64_t>();
            reply["prompt"] = render(job);
        } catch (const std::exception & error) {
            reply["error"] = std::string(error.what());
        }
        std::cout << reply.dump() << std::endl;
    }
}
