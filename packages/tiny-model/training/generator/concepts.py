"""Questions about terms of local inference, with one sentence as the answer."""

import re

from .dialogue import Dialogue, single
from .source import Source

# Names of a term, and what it is.
CONCEPTS: list[tuple[list[str], str]] = [
    (["a token", "tokens"], "A token is a small piece of text, such as a word or part of a word, that the model reads and writes."),
    (["a tokenizer", "the tokenizer"], "A tokenizer splits text into tokens and joins tokens back into text."),
    (["a prompt", "prompts"], "A prompt is the text you give to the model so that it knows what to do."),
    (["a system prompt", "the system prompt", "a system message"], "A system prompt is the first message of a chat. It sets the role and the rules for the model."),
    (["a context window", "the context window", "context length", "the context size", "the context"], "The context window is the number of tokens the model can see at once, prompt and answer together."),
    (["temperature", "the temperature setting", "sampling temperature"], "Temperature controls randomness: low values give stable answers, high values give more varied ones."),
    (["top-p", "top p", "top_p", "nucleus sampling"], "Top-p keeps only the most likely tokens whose probabilities add up to p."),
    (["top-k", "top k", "top_k"], "Top-k keeps only the k most likely tokens at each step."),
    (["min-p", "min p", "min_p"], "Min-p drops tokens that are much less likely than the best token."),
    (["greedy decoding", "greedy sampling"], "Greedy decoding always picks the most likely token, so the answer is the same every time."),
    (["a seed", "the seed", "a random seed"], "A seed is a number that makes random sampling repeatable."),
    (["a repeat penalty", "the repeat penalty", "repetition penalty"], "A repeat penalty makes the model less likely to write the same tokens again."),
    (["max tokens", "the max tokens option", "max_tokens"], "Max tokens is the limit on how many tokens the model may write in one answer."),
    (["a stop sequence", "stop sequences", "stop words"], "A stop sequence is a text that ends the answer as soon as the model writes it."),
    (["GGUF", "a GGUF file", "the GGUF format", "a .gguf file"], "GGUF is a file format that holds model weights, the tokenizer and metadata in one file."),
    (["quantization", "model quantization", "a quantized model"], "Quantization stores weights with fewer bits, so that the model is smaller and faster."),
    (["Q8_0", "Q8 quantization"], "Q8_0 is a quantization with 8 bits per weight. It is close to the original quality."),
    (["Q4_K_M", "Q4 quantization"], "Q4_K_M is a quantization with about 4 bits per weight. It is a good balance of size and quality."),
    (["an embedding", "embeddings", "embedding vectors"], "An embedding is a list of numbers that stands for the meaning of a text."),
    (["cosine similarity"], "Cosine similarity compares two embeddings. Values near one mean similar texts."),
    (["a vector store", "a vector database"], "A vector store keeps embeddings and finds the ones closest to a query."),
    (["RAG", "retrieval augmented generation", "retrieval"], "RAG means that the program first finds helpful texts and then gives them to the model with the question."),
    (["reranking", "a reranker", "a reranking model"], "Reranking sorts found texts again with a model so that the best ones come first."),
    (["chunking", "text chunking"], "Chunking cuts long documents into small parts before they are embedded."),
    (["tool calling", "function calling", "tool use"], "Tool calling lets the model ask your program to run a function and then use the result."),
    (["a tool", "tools", "a tool definition"], "A tool is a function with a name, a description and parameters that the model may call."),
    (["a JSON schema", "JSON schemas", "a schema"], "A JSON schema describes the shape of JSON data, so that the output can be checked."),
    (["structured output", "JSON mode", "structured outputs"], "Structured output forces the model to answer with JSON that fits your schema."),
    (["a grammar", "a GBNF grammar", "grammars"], "A grammar limits which tokens the model may write, so that the output always has the right form."),
    (["streaming", "response streaming", "token streaming"], "Streaming sends the answer piece by piece while the model is still writing."),
    (["server-sent events", "server sent events", "SSE"], "Server-sent events are a simple way to stream text from a server to a client over HTTP."),
    (["a KV cache", "the KV cache"], "The KV cache stores past attention results, so that the model does not read the same tokens twice."),
    (["prompt caching", "a prompt cache", "the prompt cache"], "Prompt caching reuses the work done for the shared start of two prompts."),
    (["chat history", "the chat history"], "The chat history is the list of earlier messages that is sent to the model again."),
    (["a chat template", "chat templates", "the chat template"], "A chat template turns a list of messages into the exact text that the model expects."),
    (["a special token", "special tokens"], "A special token marks structure, such as the start or the end of a message."),
    (["an end of turn token", "the end of turn token", "EOS"], "The end of turn token tells the program that the answer is finished."),
    (["inference", "model inference"], "Inference means running a trained model to get an answer."),
    (["training", "model training"], "Training means adjusting the weights of a model with many examples."),
    (["fine-tuning", "finetuning"], "Fine-tuning trains a finished model a little more on your own examples."),
    (["a LoRA adapter", "LoRA", "LoRA adapters", "a LoRA"], "A LoRA adapter is a small set of extra weights that changes how a model behaves."),
    (["a large language model", "an LLM", "LLMs", "a language model"], "A large language model predicts the next token of a text and can so answer questions."),
    (["a local model", "local models", "local inference"], "A local model runs on your own machine, so that no data leaves it."),
    (["a hallucination", "hallucinations"], "A hallucination is an answer that sounds right but is made up."),
    (["latency", "the latency"], "Latency is the time between a request and its answer."),
    (["throughput"], "Throughput is the number of tokens or requests handled per second."),
    (["time to first token", "TTFT"], "Time to first token is how long you wait until the first part of the answer appears."),
    (["batching", "continuous batching"], "Batching handles several requests together to use the hardware better."),
    (["a parallel slot", "parallel slots", "slots"], "A parallel slot is a place in the context where one request can run next to others."),
    (["a request queue", "the queue", "queueing"], "A request queue holds requests until the model has time for them."),
    (["concurrency", "the concurrency limit"], "Concurrency is the number of requests that run at the same time."),
    (["an abort signal", "abort signals", "cancellation"], "An abort signal lets you cancel a request before the answer is finished."),
    (["rate limiting", "a rate limit"], "Rate limiting allows only a fixed number of requests per client and time."),
    (["an API key", "API keys"], "An API key is a secret text that proves who sends a request."),
    (["a health check", "health checks"], "A health check is an endpoint that tells if the server is ready."),
    (["metrics", "server metrics"], "Metrics are numbers such as tokens per second or memory use that show how the server is doing."),
    (["a middleware", "middleware"], "Middleware is code that runs before or after a request handler."),
    (["GPU layers", "the gpu layers option"], "GPU layers is the number of model layers that are placed on the graphics card."),
    (["VRAM", "video memory"], "VRAM is the memory of the graphics card where model layers can live."),
    (["memory mapping", "mmap"], "Memory mapping loads a model file lazily, so that starting is quick and memory is shared."),
    (["CPU threads", "the threads option"], "CPU threads set how many processor cores the model may use."),
    (["flash attention"], "Flash attention is a faster way to compute attention that needs less memory."),
    (["speculative decoding"], "Speculative decoding lets a small model guess tokens that a big model then checks."),
    (["a draft model", "draft models"], "A draft model is a small model that guesses tokens for speculative decoding."),
    (["an agent", "AI agents", "agents"], "An agent is a program that lets a model plan steps and call tools until a task is done."),
    (["a reasoning model", "thinking mode", "reasoning"], "Thinking mode lets the model write down its thoughts before the answer."),
    (["multimodal input", "a multimodal model"], "Multimodal input means that the model can read images or sound besides text."),
    (["chat completions", "the chat completions endpoint"], "Chat completions is the endpoint that takes messages and returns the next message."),
    (["a model registry", "the model registry"], "A model registry is a server from which models are pulled by name."),
    (["a tenant", "tenants"], "A tenant is a group of callers that share cached prompts and one share of the model."),
    (["a Modelfile", "Modelfiles"], "A Modelfile is a text file that makes a new model from another one, with its own defaults."),
    (["an interceptor", "interceptors"], "An interceptor is code of your app that runs around each call of a model."),
    (["an alias", "model aliases"], "An alias is another name for a model, so that clients can ask for the name they know."),
    (["a batch", "batch jobs"], "A batch is a list of requests that run in the background, at half the price."),
    (["perplexity"], "Perplexity measures how well a model predicts a text. Lower is better."),
]

TEMPLATES = """
What is {}?|What is {}?|What's {}?|Whats {}?|Explain {}.|Can you explain {}?|Please explain {} to me.|Tell me about {}.
What does {} mean?|Define {}.|Could you define {}?|I do not understand {}.|What do you know about {}?|Meaning of {}?
Give me a short definition of {}.|How would you describe {}?|In simple words, what is {}?|Help me understand {}.
What is meant by {}?|{}?|Do you know what {} is?|Describe {}.|I have a question about {}.|What exactly is {}?
Can you tell me what {} is?|I keep hearing about {}, what is it?|Can you tell me about {}?|Teach me about {}.
What is the meaning of {}?|Explain {} briefly.|Explain {} in one sentence.|{}, what is that?|{} - what is that?
I want to know what {} is.|Say something about {}.|What can you tell me about {}?|What do people mean by {}?
Remind me what {} is.|I forgot what {} is.|Give me the definition of {}.|What is {} good for?|What is {} for?
Why would I use {}?|Why do I need {}?|How does {} work?|What does {} do?|What does {} do for me?|I do not get {}.
What do you mean by {}?|Explain to me what {} is.|Please tell me: what is {}?|So what exactly is this {} thing?
Tell me what {} is.|And what is {}?|Who can explain {}?|How would you define {}?|Is {} important?|Why is {} useful?
When do I need {}?|I am new here. What is {}?|In short: what is {}?|Do you know {}?|What can I do with {}?
Let us talk about {}.|Give me a hint about {}.|I read about {}. What is it?|Someone mentioned {}. What is that?
What is the point of {}?|What's the idea of {}?|{} explained simply|{}: what does it mean?|{} in one sentence?
Why do people use {}?|Why do people need {}?|What does {} control?|What does {} even do?|{} is what?|what are {}
Quickly explain {}.|I would like to learn about {}.|I like to know what {} is.|Is {} a good thing?|What was {} again?
""".replace("\n", "|").strip("|").split("|")
HELD_OUT_TEMPLATES = [
    "Would you mind explaining {}?", "Any idea what {} is?", "Please describe what {} means.",
    "I'd like to learn about {}.", "Could you tell me what {} means?", "What should I know about {}?",
    "So what is {} exactly?", "I need a definition for {}.",
]


def concept(source: Source) -> Dialogue:
    names, answer = source.choice(CONCEPTS)
    name = source.choice(names)
    if source.held_out:
        question = source.choice(HELD_OUT_TEMPLATES).format(name)
    else:
        if source.chance(0.15):
            name = re.sub(r"^(a|an|the) ", "", name)
        question = source.choice(TEMPLATES).format(name)
    question = question[0].upper() + question[1:]
    return single("concept", source.noisy(question), answer, f"The user asks about {name}.")
