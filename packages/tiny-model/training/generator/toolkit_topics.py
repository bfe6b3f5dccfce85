"""What strangers ask about this toolkit, and answers that are true for it.

An answer changes with the toolkit: README.md and docs/ are its source. `actions` complete "How do I …?", `things`
complete "Does it have …?" or stand alone, and `questions` are whole. `{it}` becomes a name of the toolkit.
`held_out` are wordings that training never sees.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    answer: str
    actions: tuple[str, ...] = ()
    things: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|") if part.strip())


def _topic(answer: str, actions: str = "", things: str = "", questions: str = "", held_out: str = "") -> Topic:
    return Topic(answer, _split(actions), _split(things), _split(questions), _split(held_out))


def _framework(name: str, answer: str, others: str = "") -> Topic:
    return _topic(
        answer,
        f"mount {{it}} in {name}|mount {{it}} in a {name} app|use {{it}} with {name}|use {{it}} in my {name} app"
        f"|add {{it}} to {name}|add the routes to my {name} server|plug {{it}} into {name}|integrate {{it}} with {name}"
        f"|run {{it}} inside {name}|connect {name} with {{it}}|set {{it}} up in {name}|serve models from {name}",
        f"{name}|{name} support|a {name} adapter|an adapter for {name}|a {name} example|routes for {name}",
        f"I use {name}. What now?|I have a {name} app. What do I write?|What do I import in {name}?"
        f"|Is there a package for {name}?|Does it work with {name}?|My server is written with {name}."
        f"|Which code do I need for {name}?|Mount in {name}?|{name} example please" + others,
        f"What must I write to get this into my {name} project?|Could I embed it in a {name} backend?",
    )


TOPICS: list[Topic] = [
    # Mounting
    _framework("Express", "In Express: app.use('/llm', llmRouter(await createLlm())), with llmRouter from @modelmount/express."),
    _framework("Koa", "In Koa: app.use(llmRouter(await createLlm()).prefix('/llm').routes()), with llmRouter from @modelmount/koa."),
    _framework("Nest", "In NestJS: add LlmModule.forRoot({ path: 'llm' }) of @modelmount/nest to the imports of your module."),
    _framework("NestJS", "In NestJS: add LlmModule.forRoot({ path: 'llm' }) of @modelmount/nest to the imports of your module."),
    _framework("Fastify", "In Fastify: app.register(llmPlugin, { llm, prefix: '/llm' }), with llmPlugin from @modelmount/fastify."),
    _framework("Hono", "In Hono: app.all('/llm/*', (c) => handle(c.req.raw)), with a handle made by toFetchHandler of @modelmount/core/http."),
    _framework("Next.js", "In Next.js: make a route handler with toFetchHandler of @modelmount/core/http."),
    _framework("Bun", "Bun takes a fetch handler: make it with toFetchHandler of @modelmount/core/http."),
    _topic(
        "Without a framework: createServer(toNodeHandler(routesFor(), await createLlm())), with toNodeHandler from @modelmount/core/http.",
        "use {it} without a framework|mount {it} in Node's own server|use {it} with node:http|use plain Node with {it}"
        "|mount {it} on createServer|use {it} with the http module|add {it} to a plain http server",
        "node:http|plain Node|Node's own server|the http module|servers without a framework|createServer of Node",
        "I have no framework. What now?|I use no framework.|Must I use a framework?|Does it work with plain Node?",
        "Is there a way to do it with the bare http server of Node?",
    ),
    _topic(
        "Modelmount is for Node: it mounts in Express, Koa, Fastify, NestJS, Hono, Next.js and Node's own server.",
        "mount {it} in Django|mount {it} in Flask|use {it} with Rails|add {it} to Laravel|use {it} from Spring"
        "|mount {it} in FastAPI|use {it} in a PHP app|mount {it} in another framework",
        "Django|Flask|Rails|Laravel|Spring|FastAPI|PHP|frameworks|other frameworks|web frameworks",
        "Which frameworks are supported?|Which frameworks does it work with?|Where can I mount it?"
        "|What can I mount this in?|List the supported frameworks.|How do I mount it?|How do I mount this?"
        "|How do I add it to my app?|How do I use it in my own server?",
        "Which web servers can host these routes?",
    ),
    _topic(
        "Mount the routes before your body parsers, so that they can read the bodies themselves.",
        "order the body parsers|use express.json() beside {it}|use a body parser with {it}",
        "body parsers|express.json()|the order of middleware",
        "Must the routes come before the body parser?|An earlier body parser consumed the body.|Where does express.json() go?"
        "|In which order do I mount things?|Before or after the body parser?|The body was already read. Why?",
        "Should the JSON parser be placed ahead of the routes?",
    ),
    _topic(
        "Mount under a prefix such as /llm. Mount at the root only for clients that take no path.",
        "choose the path|choose the prefix|mount {it} at the root|change the path of the routes|use another prefix",
        "a prefix|another path|mounting at the root",
        "Which path should I use?|Root or prefix?|Under which path are the routes?|Can I mount at the root?",
        "Is it better to serve at / or below a path?",
    ),
    # First steps
    _topic(
        "In a clone, run npm ci and npm start. For your own app, pack the packages as the installation page shows.",
        "install {it}|install the toolkit|set up {it}|get started|get started with {it}|get it|begin|try {it}|use {it}"
        "|add {it} to my project",
        "the installation|an install command|installation steps|a quick start|first steps|a getting started guide",
        "How to install?|What is the install command?|Where do I begin?|Where do I start?|What is the first step?",
        "What commands do I type to have it installed?",
    ),
    _topic(
        "Run npm start in a clone, or modelmount serve. The server then listens on port 11434.",
        "start the server|run the server|launch the server|start {it}|run {it}|serve models|boot the server|bring the server up",
        "a start command|the serve command|a server",
        "What command starts the server?|Start the server, how?|Which command do I run?|How do I get it running?",
        "By what command does the server come up?",
    ),
    _topic(
        "The server listens on 127.0.0.1, port 11434. Choose another port with modelmount serve --port 8080.",
        "change the port|use another port|choose a port|set the port|run {it} on another port|listen on port 8080"
        "|run {it} beside Ollama|use port 3000",
        "another port|the default port|a port option",
        "Which port is it?|What is the port?|What port does it use?|The port is in use.|Port 11434 is in use."
        "|EADDRINUSE|Port already taken.|Ollama uses the same port.|On which port does the server run?|address already in use",
        "Something else occupies the port, how do I pick a new one?",
    ),
    _topic(
        "Version 0.1.0 is not on npm yet. Build and pack the packages in a clone of the repository.",
        "install {it} from npm|install the npm package|get the npm package",
        "an npm package|a release|a published version|a stable release",
        "Is it on npm?|Is it released?|Which version is this?|Why does npm not find the package?|npm says 404"
        "|When is it released?|What is the current version?|Can I npm install it?",
        "Can the package be fetched from the npm registry already?",
    ),
    _topic(
        "You need Node 20.19 or newer, on Linux with glibc 2.34 or newer.",
        "know if my Node is new enough|meet the requirements",
        "the requirements|Node 18|Node 22|Node 24|the Node version|system requirements|old versions of Node|Alpine Linux",
        "What do I need?|Which Node version do I need?|Which version of Node?|What are the requirements?"
        "|Does it run on Node 18?|Does it run on Node 22?|Does it run on Alpine?|Is Linux required?|Which Linux do I need?",
        "What is the oldest Node it accepts?",
    ),
    _topic(
        "It is tested on Linux x64. For macOS and Windows there are prebuilt engines, but they were not tested.",
        "run {it} on Windows|run {it} on a Mac|use {it} on macOS|install {it} on Windows|run {it} on arm64",
        "Windows|macOS|Apple silicon|Mac support|Windows support|ARM|a Raspberry Pi",
        "Does it work on Windows?|Does it work on a Mac?|Which platforms are supported?|Which operating systems work?",
        "I own a MacBook, is that supported?",
    ),
    _topic(
        "No, a GPU is not required. Small models run well on a CPU.",
        "run {it} without a GPU|use only the CPU|run models on a CPU|run {it} without a graphics card",
        "a CPU mode|CPU only machines|machines without a GPU|my old laptop",
        "Do I need a GPU?|Is a GPU required?|Does it work on a CPU?|Will it run without a GPU?|Must I have a GPU?"
        "|Do I need CUDA?|Is a graphics card needed?|Does it need a GPU?|I have no GPU.|Do I need an NVIDIA card?",
        "Would my machine lacking a graphics card be good enough?",
    ),
    _topic(
        "Yes, it works offline. Your data stays on your machine, and nothing is downloaded unasked.",
        "use {it} offline|run {it} without internet|keep my data private|run {it} behind a firewall|keep data on my machine",
        "privacy|an offline mode|telemetry|data protection|tracking",
        "Do I need the internet?|Does it work offline?|Is my data safe?|Is my data sent anywhere?|Where does my data go?"
        "|Do you send my data to anyone?|Is it private?|Does it phone home?|Does it upload my prompts?|Does it need a network?"
        "|Is there telemetry?|Who can see my prompts?|Does it send data to OpenAI?",
        "Are my prompts shared with any third party?",
    ),
    _topic(
        "The licence is MIT, so you may use it for free, also in a company.",
        "use {it} in my company|use {it} commercially|use {it} for free",
        "a licence|a license|a commercial license|a price|costs",
        "What license is it?|What is the licence?|Which license is used?|May I use it commercially?|Is it open source?"
        "|Is it free?|How much does it cost?|What does it cost?|Do I have to pay?|Is there a paid version?",
        "Under which terms may a business use it?",
    ),
    _topic(
        "Modelmount is a toolkit that adds local LLMs to your Node server, with the APIs of Ollama, OpenAI and Anthropic.",
        "understand {it}",
        "Modelmount|the toolkit|this toolkit|this project|this server",
        "What is Modelmount?|What is this toolkit?|What does this toolkit do?|Explain Modelmount.|Tell me about Modelmount."
        "|What is this project for?|Why should I use it?|What is it good for?|What does Modelmount do?",
        "In a few words, what is the purpose of Modelmount?",
    ),
    _topic(
        "It has chats, tools, JSON schemas, embeddings, keys, limits, spending, batches, a prompt cache, metrics and a console.",
        "see all features",
        "a list of features|features|many features",
        "What features does it have?|List the features.|What is included?|What can the toolkit do?|What can Modelmount do?"
        "|Which features are there?|What do I get?",
        "Give me an overview of everything the toolkit offers.",
    ),
    _topic(
        "The documentation is in the docs folder. Begin with docs/index.md and the README.",
        "read the documentation|find the docs|learn more|find examples|read more about {it}",
        "documentation|docs|a manual|a tutorial|examples|a guide|a website",
        "Where is the documentation?|Where are the docs?|Where can I read more?|Is there a manual?|Where are examples?",
        "Which page should I read to learn about it?",
    ),
    _topic(
        "Please open an issue in the repository of the project and describe the steps.",
        "report a bug|report a problem|report an issue|contact the developers|ask for a feature|file a bug",
        "a bug tracker|support|an issue tracker|a contact",
        "I found a bug.|Where do I report a bug?|Something is broken.|Who do I contact?|Where do bugs go?",
        "Whom do I tell about a defect?",
    ),
    # Clients and APIs
    _topic(
        "Set baseURL of the openai client to the server plus /v1, such as http://127.0.0.1:11434/v1. Any API key works.",
        "use the OpenAI SDK|use the OpenAI client|connect the OpenAI client|use {it} with the openai package"
        "|point the OpenAI SDK to {it}|call {it} like OpenAI|use {it} as a drop-in for OpenAI",
        "the OpenAI API|OpenAI|the openai package|the OpenAI SDK|OpenAI compatibility|chat completions of OpenAI",
        "Is it compatible with OpenAI?|What is the base URL for OpenAI?|Which baseURL do I use?|Does the OpenAI client work?",
        "My code calls OpenAI, what do I change to call this server?",
    ),
    _topic(
        "Set baseURL of the Anthropic client to the server, such as http://127.0.0.1:11434. Any API key works.",
        "use the Anthropic SDK|use the Anthropic client|connect the Anthropic client|use {it} with @anthropic-ai/sdk"
        "|call {it} like Claude|point the Anthropic SDK to {it}",
        "the Anthropic API|Anthropic|the Anthropic SDK|the messages API|Anthropic compatibility|/v1/messages",
        "Is it compatible with Anthropic?|What is the base URL for Anthropic?|Does Anthropic's SDK work?",
        "My app speaks to Claude's API, how do I move it here?",
    ),
    _topic(
        "Set the host of the ollama client, such as http://127.0.0.1:11434. That is its default.",
        "use the Ollama client|connect the Ollama client|use the ollama package|use {it} with ollama|call {it} like Ollama",
        "the Ollama API|the ollama package|Ollama clients|Ollama compatibility|/api/chat",
        "Is it compatible with Ollama?|Does the ollama package work?|Which host do I set for Ollama?",
        "What address does an Ollama client need?",
    ),
    _topic(
        "Coding agents work: set their base URL to the server. The page docs/compatibility/clients.md has their settings.",
        "use Claude Code|use Codex|use Claude Code with {it}|use Codex with {it}|use {it} with a coding agent|connect Cline"
        "|connect Continue|use {it} in VS Code|connect an agent",
        "Claude Code|Codex|coding agents|Cline|Continue|VS Code|Cursor|aider",
        "Does Claude Code work?|Does Codex work?|Which agents work?|Which clients are supported?",
        "Could my coding assistant talk to this server?",
    ),
    _topic(
        "Send POST /v1/chat/completions with a model and messages, as with OpenAI.",
        "send a request|call it with curl|ask a question with curl|call the API|make my first request|send a message"
        "|ask the model|use curl",
        "a curl example|an example request|an HTTP API|a REST API|endpoints",
        "What are the endpoints?|Which routes are there?|How does a request look?|curl example?|Which URL do I call?",
        "Show me how an HTTP call to it looks.",
    ),
    _topic(
        "Call it without HTTP: const { text } = await llm.chat('Hi'). Use createLlm() of @modelmount/core for the llm.",
        "call the model in process|use {it} without HTTP|call the model from my own code|call the model in my code"
        "|ask the model in my own route|use llm.chat|use {it} as a library|get an answer in code",
        "in-process calls|llm.chat|a JavaScript API|a library API|calls without HTTP",
        "Do I need HTTP?|Can my code call the model directly?|What is llm.chat?|How does my own code ask a model?",
        "Is there a function I can await instead of an HTTP request?",
    ),
    _topic(
        "Use createModelmount(llm) of @modelmount/ai-sdk as the provider of Vercel's AI SDK.",
        "use the AI SDK|use {it} with Vercel's AI SDK|use generateText|use streamText|use {it} as a provider of the AI SDK",
        "the AI SDK|Vercel's AI SDK|Vercel AI|generateText|an AI SDK provider|streamText",
        "Does it work with the AI SDK?|Is there a provider for the AI SDK?|Does streamText work?",
        "What do I pass to generateText of Vercel?",
    ),
    # Models
    _topic(
        "Run modelmount pull llama3.2 for Ollama's registry, or modelmount pull hf.co/OWNER/REPO for Hugging Face.",
        "pull a model|download a model|get a model|get a bigger model|get another model|pull a model from Hugging Face"
        "|download Llama|download Qwen|get models from Ollama|install a model|fetch a model|add a new model",
        "a pull command|Hugging Face|Ollama's registry|model downloads|downloads|Llama|Qwen|Mistral|Gemma",
        "Where do I get models?|Where do models come from?|I want a bigger model.|How do I get llama?|Can it download models?"
        "|Which command downloads a model?|I need a better model.",
        "What do I type to have a model fetched?",
    ),
    _topic(
        "Models are in ~/.ollama/models, or in the folder that the option models names. Put your GGUF files there.",
        "add a GGUF file|use my own GGUF file|use my own model|choose the models folder|change the models folder"
        "|load a GGUF file|use another folder for models|use a local file",
        "a models folder|a model directory|my own models|local files",
        "Where are models stored?|Where do I put my model files?|Which folder holds the models?|Where do GGUF files go?"
        "|Where does it look for models?|Where is my model saved?|In which folder do models go?",
        "At what location on disk should a model file be?",
    ),
    _topic(
        "No, models that Ollama has pulled are found in ~/.ollama/models without a copy.",
        "use the models of Ollama|reuse my Ollama models|share models with Ollama",
        "models of Ollama|models that Ollama has pulled",
        "Must I download my Ollama models again?|I have models in Ollama.|Are my Ollama models found?"
        "|Do I need to pull my models again?|Do I have to copy the models of Ollama?|Does it copy the models of Ollama?",
        "Are the files which Ollama fetched usable, or is a new download needed?",
    ),
    _topic(
        "Name the model in the request, such as \"model\": \"llama3.2\". Every model in the folder can be used by name.",
        "change the model|switch models|use another model|use a different model|use more than one model|choose a model"
        "|select a model|use two models|load several models",
        "several models|more than one model|a choice of models|a model option",
        "Can I use several models?|Can I load a different model?|How to switch models?|Can I run two models at once?",
        "How does a request say which model should answer?",
    ),
    _topic(
        "Any GGUF model works whose architecture llama.cpp supports.",
        "know which models work",
        "GGUF models|safetensors|PyTorch models|all models|vision models",
        "Which models can I use?|Which models are supported?|What models work?|Can I use any GGUF model?"
        "|Which model files work?|What kinds of models are supported?|Which architectures are supported?",
        "Are there limits on the kinds of GGUF files I load?",
    ),
    _topic(
        "Use 1 to 4 billion parameters for sorting texts, 4 to 14 billion for chat and tools, and more for code.",
        "choose the size of a model|find a good model|pick a model size",
        "a recommended model|a recommendation for a model|a good model",
        "Which model should I use?|Which size do I need?|What is a good model?|Which model is best?|Which model is good for chat?",
        "How many billion parameters are right for my task?",
    ),
    _topic(
        "You need the size of the model file, plus the KV cache and 0.12 GB. An 8B model with 4 bits takes about 5 GB.",
        "know how much memory I need|estimate the memory|plan the RAM",
        "memory requirements|a memory limit|much RAM|much memory",
        "How much memory do I need?|How much RAM is needed?|What are the memory requirements?|Does it need much memory?"
        "|How big must my RAM be?|How much RAM does a 7B model need?|How much VRAM do I need?|Will it fit into 16 GB?",
        "What amount of memory must the machine have?",
    ),
    _topic(
        "Run modelmount list for all models, and modelmount ps for the loaded ones.",
        "list the models|see all models|see which models are loaded|list loaded models|show my models",
        "a list of models|the list command|the ps command",
        "Which models do I have?|Which models are there?|Which models are loaded?|What models are installed?",
        "How do I print the names of the models on this machine?",
    ),
    _topic(
        "Run modelmount rm NAME to delete a model.",
        "delete a model|remove a model|free disk space|uninstall a model|get rid of a model",
        "a delete command|the rm command",
        "How to delete a model?|Which command removes a model?|My disk is full of models.",
        "A model is no longer wanted, what erases it?",
    ),
    _topic(
        "Set local.keepAlive, such as '1h', or keep_alive in a request. An idle model ends after that time.",
        "keep a model loaded|keep the model in memory|unload a model|set the keep alive|unload idle models"
        "|avoid loading the model again",
        "keepAlive|keep_alive|a keep-alive option|an idle timeout",
        "How long does a model stay loaded?|Why is my model unloaded?|When is a model unloaded?|The first answer is slow.",
        "May a model remain in RAM between calls?",
    ),
    _topic(
        "Set local.contextSize, or contextSize in modelSettings for one model. The default is 4,096 tokens.",
        "change the context size|increase the context|set the context size|use a longer context|raise the context window"
        "|use long prompts|set num_ctx",
        "contextSize|a bigger context|long contexts|a context option",
        "What is the default context size?|The prompt is too long.|My prompt does not fit.|The context is too small."
        "|The prompt has too many tokens.|What is contextSize?|How many tokens fit?",
        "Where is the number of context tokens configured?",
    ),
    _topic(
        "Use the option aliases, such as { 'gpt-5': 'qwen3:8b' }. Clients can then ask for the name they know.",
        "use an alias|rename a model|map a model name|map gpt-5 to my model|give a model another name|add a model alias"
        "|use a fallback model|replace claude by my model",
        "aliases|other model names|model mapping|fallback models|a name mapping",
        "My client asks for gpt-5. What now?|Can I rename a model?|How do aliases work?|The client wants another model name.",
        "A client insists on a fixed model name, how do I answer with mine?",
    ),
    _topic(
        "Write a Modelfile and run modelmount create NAME -f Modelfile.",
        "create a model|use a Modelfile|make my own model|set defaults of a model|set a default system prompt|write a Modelfile",
        "the create command|custom models|defaults for a model",
        "Do Modelfiles work?|How to create a model from a Modelfile?|Can a model have its own system prompt?",
        "How are a prompt and parameters baked into a new model name?",
    ),
    _topic(
        "Serve with --adapter FILE.gguf=0.8, or name the adapter in a Modelfile.",
        "use a LoRA adapter|apply a LoRA|add an adapter|load an adapter|use my fine-tuned adapter",
        "LoRA support|adapters|an adapter option|fine-tuned adapters",
        "Can I use LoRA adapters?|Does LoRA work?|How to load a LoRA?",
        "Where do I name the adapter of my fine-tune?",
    ),
    _topic(
        "Run modelmount doctor. It checks the engine, memory, models and database of the machine.",
        "check my machine|check the setup|find out what is wrong|diagnose a problem|debug {it}|test my installation",
        "a diagnosis|the doctor command|a check of the machine|troubleshooting",
        "It does not work.|What is wrong with my setup?|Why does it not start?|Where is the troubleshooting page?",
        "Is there something that inspects the computer for problems?",
    ),
    # Access
    _topic(
        "Set auth: 'keys' and create keys with llm.keys.create({ name }) or modelmount keys create NAME.",
        "create an API key|make an API key|require API keys|use API keys|add an API key|protect the server|issue a key"
        "|secure the API|give a user a key|turn on authentication|set a password|hand out keys",
        "API keys|a login|access keys|authentication|keys for users|security",
        "Do I need an API key?|How do keys work?|Where do I get an API key?|Which API key do I use?|How to add keys?",
        "My colleagues shall each have their own key, how?",
    ),
    _topic(
        "Revoke it: modelmount keys revoke ID, or llm.keys.revoke(id).",
        "revoke a key|delete a key|disable a key|block a key|withdraw a key|remove an API key|invalidate a key",
        "a way to revoke keys|key revocation",
        "A key has leaked.|My key was stolen.|An employee left. What about the key?|How to revoke a key?",
        "A secret got into public, how is it blocked?",
    ),
    _topic(
        "Set expiresIn when you create the key, such as '30d'.",
        "let a key expire|set an expiry|make a key expire|limit the lifetime of a key|create a temporary key",
        "an expiry of keys|expiring keys|temporary keys|expiresIn",
        "Do keys expire?|When does a key expire?|Can a key be valid for a week?|How long is a key valid?",
        "A key should be valid for one month only, how?",
    ),
    _topic(
        "The key is unknown, revoked or expired. Check it with modelmount keys list.",
        "fix an invalid API key|fix the invalid key error",
        "the invalid API key error",
        "Why is my API key invalid?|My key does not work.|It says the API key is invalid.|My API key is rejected."
        "|The server rejects my key.|Invalid API key error. Why?",
        "For what reason is a key refused?",
    ),
    _topic(
        "By default only calls from the same machine are answered. Set auth: 'keys' or 'host' for others.",
        "fix the error 401|fix unauthorized errors|allow other callers|call {it} from a container",
        "the error 401|unauthorized errors",
        "Why do I get 401?|It says unauthorized.|401 error|Authentication required, why?|Why is my call rejected?"
        "|Why does it answer only on my machine?|Remote calls get 401.|My phone cannot reach it.",
        "Calls from a second computer are refused, why?",
    ),
    _topic(
        "Set auth: 'host' and give llmRouter the option authenticate, which returns the caller of a request.",
        "pass on my users|use my own login|let my users call it|use my own authentication|use sessions|use JWT"
        "|identify the caller|connect my login|authenticate my users",
        "my own login|auth: 'host'|the authenticate option|JWT|OAuth|my users",
        "My app has a login already.|Can my own users call the routes?|What is auth: 'host'?|How does it know the user?",
        "People sign in to my app, how do the routes learn who they are?",
    ),
    _topic(
        "Run modelmount serve --host 0.0.0.0 --auth keys, and create a key for each client.",
        "serve other machines|open the server to my network|allow other computers|expose the server|serve the whole office"
        "|make it public|reach the server from another machine|listen on all addresses",
        "remote access|a LAN mode|access from other machines|network access",
        "Can other machines use it?|Can my team use the server?|How to open it to the network?|Can I put it on the internet?",
        "How is the server made available to a second machine?",
    ),
    _topic(
        "Add the page's origin to the option origins, or to --origins of modelmount serve.",
        "fix CORS|allow a web page|call it from a browser|allow another origin|set origins|fix a CORS error",
        "CORS|browser calls|calls from web pages|origins",
        "I get a CORS error.|Origin not allowed, why?|Can a web page call it?|The browser blocks my call.",
        "A site on another domain is blocked, what do I set?",
    ),
    # Limits and money
    _topic(
        "Set limits on a key, such as { requestsPerMinute: 60, tokensPerMinute: 20000, tokensPerDay: 500000, concurrent: 4 }.",
        "limit requests|limit requests per minute|set a rate limit|limit a user|rate limit users|limit tokens per day"
        "|limit tokens per minute|limit a key|throttle a client|cap the number of requests|limit concurrent calls"
        "|stop abuse|set limits|limit a customer",
        "rate limits|limits per user|request limits|token limits|throttling|quotas|a rate limiter",
        "How do limits work?|Can I limit how often a user calls?|How to set limits?|One user sends too many requests."
        "|Too many requests from one client.|Where are the limits set?",
        "How can a caller be held to ten calls each minute?",
    ),
    _topic(
        "Use createRateLimiter of @modelmount/core/limits on your own routes. It can replace express-rate-limit.",
        "limit my own routes|rate limit my own routes|replace express-rate-limit|use the limiter on my routes"
        "|migrate from express-rate-limit",
        "limits on my own routes|express-rate-limit|a limiter for my routes",
        "Can it replace express-rate-limit?|Does the limiter work on other routes?",
        "My login route needs a limit, too: what do I use?",
    ),
    _topic(
        "The limit is used up for now. Wait for the seconds of the header retry-after, or raise the limit.",
        "fix the error 429|handle 429|handle rate limit errors",
        "the error 429|retry-after",
        "Why do I get 429?|I get the error 429.|It says that the limit is exceeded.|My request would exceed the limit.",
        "A client was told 429, what should it do?",
    ),
    _topic(
        "The queue of the model is full. Try again later, or raise local.parallel if you have memory.",
        "fix the error 503|handle a full queue|serve more requests at once|answer more users in parallel",
        "the error 503|a queue|parallel requests|concurrent users",
        "Why do I get 503?|The server is overloaded.|The queue is full.|How many requests run at once?"
        "|How many users can it serve?|Can it answer in parallel?|Requests are queued. Why?",
        "Calls pile up and are refused, what helps?",
    ),
    _topic(
        "Give the key spendingLimit: { usd: 5, period: 'month' }, and set prices for your models.",
        "limit spending|set a spending limit|limit the cost|set a budget|cap the costs of a user|limit what a user spends"
        "|set a monthly budget|limit money|control costs",
        "spending limits|budgets|a cost limit|a monthly limit|cost control",
        "Can I set a budget?|How do spending limits work?|Can a user have a budget?|How to control costs?",
        "A customer may use at most five dollars, how is that set?",
    ),
    _topic(
        "Set the option prices, such as { tiny: { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }.",
        "set a price|set prices|change the price of a model|define the price per token|charge for tokens|bill my customers",
        "prices|a price per token|billing|price settings",
        "Where are prices set?|What is the price of a token?|How do prices work?|The model has no price.",
        "At which place do I say what tokens cost?",
    ),
    _topic(
        "Run modelmount usage --by key, or call llm.usage.report({ by: 'key' }).",
        "see the usage|see who used it|count tokens|get a usage report|see how many tokens were used|track usage"
        "|see the costs|export usage|see the usage of a key",
        "usage reports|statistics|a usage ledger|token counts|accounting",
        "Who used the most tokens?|How many tokens were used?|Where is the usage?|What did a key cost?",
        "I need a list of tokens spent by each user.",
    ),
    # Prompt cache and batches
    _topic(
        "Yes. Set cache_control on a part of the prompt. The cached state lives five minutes after its last use, or one hour.",
        "cache prompts|use the prompt cache|cache a prompt|use cache_control|speed up long prompts|reuse a long prompt"
        "|avoid reading a prompt twice|turn on caching|enable caching",
        "caching|cache_control|a cache|cached prompts|prompt caching like Anthropic",
        "Does it have a cache?|Is there caching?|Are prompts cached?|How does caching work?|How long is a prompt cached?"
        "|What is the lifetime of the cache?|When does the cache expire?|What is the ttl of the cache?",
        "My long system prompt repeats in each call, can its state be kept?",
    ),
    _topic(
        "Use batches: llm.batches.create(requests), or the batches of the OpenAI and Anthropic SDKs. They cost half the price.",
        "run a batch|create a batch|send many requests|process thousands of requests|run requests in the background"
        "|use the batch API|classify many texts|submit a batch|save money on many requests|run jobs at night",
        "batches|a batch API|batch requests|background jobs|bulk requests|batch processing",
        "Does it support batches?|What does a batch cost?|How do batches work?|Are batches cheaper?|I have 10000 texts.",
        "A long list of prompts can wait until tonight, what do I use?",
    ),
    # Features of answers
    _topic(
        "Set stream: true. Over HTTP the pieces arrive as server-sent events, and in code with for await.",
        "stream the answer|stream tokens|get a streaming response|enable streaming|turn on streaming|stream to a web page"
        "|show the answer while it is written|stream in my own route",
        "streams|streamed answers|token by token output|SSE streams",
        "Can I stream?|Is streaming supported?|How to stream?|The answer comes all at once.|I want to see words as they come.",
        "Words should show up one after another, what do I set?",
    ),
    _topic(
        "Pass an abort signal and abort it. A client that disconnects also cancels its answer.",
        "stop a request|cancel an answer|abort a generation|cancel a request|stop the model|interrupt an answer|abort a call",
        "an abort option|a stop button|a cancel option|AbortController",
        "Can I cancel?|How to stop an answer?|What happens when the client disconnects?|Can I abort a call?",
        "The user closes the page, does the model stop?",
    ),
    _topic(
        "Use tool({ description, parameters, execute }) and pass it to llm.chat in tools. Over HTTP, send tools in the request.",
        "add a tool|define a tool|give the model a tool|use function calling|call my own functions|register a function"
        "|let the model call my code|use tool calling|give the model functions|make an agent",
        "function calls|tool support|tool calls|agents with tools|custom tools|MCP",
        "Can the model call functions?|Does it support tool calling?|How to add a tool?|How do tools work?",
        "The model should run code of mine, how do I offer it?",
    ),
    _topic(
        "Pass a schema: llm.chat(text, { schema }), or response_format over HTTP. The answer then always fits the JSON schema.",
        "get JSON|force JSON|get JSON output|make the answer valid JSON|get structured output|use a JSON schema|use zod"
        "|return JSON|get typed answers|parse the answer|extract data as JSON",
        "JSON output|JSON schemas in requests|zod|response_format|typed output|guaranteed JSON",
        "Can the model return JSON?|The JSON is broken.|How to get JSON?|Is JSON output guaranteed?|I need JSON answers.",
        "The output must be machine readable every time, how?",
    ),
    _topic(
        "Pull an embedding model, such as nomic-embed-text, and call llm.embed(text, { model }) or POST /v1/embeddings.",
        "get embeddings|create embeddings|embed a text|use embeddings|make vectors|search by meaning|use an embedding model"
        "|do semantic search|get a vector",
        "embedding models|vectors|semantic search|/v1/embeddings|text vectors|similarity search",
        "Can it make embeddings?|Which model makes embeddings?|How to embed texts?|How do I get vectors?",
        "Numbers for comparing texts, how do I obtain them?",
    ),
    _topic(
        "Embed your texts, find the nearest ones, and put them into the prompt. See docs/guides/embeddings.md.",
        "build RAG|answer from my documents|chat with my documents|use my own documents|build a chatbot for my docs"
        "|search in my documents|ask questions about a PDF|use {it} for RAG",
        "a RAG example|document search|a knowledge base|chat with documents",
        "Can it answer from my documents?|How to build RAG?|Can it read my files?|Can I ask about my own texts?",
        "My handbook should be the source of answers, how?",
    ),
    _topic(
        "Set the temperature to zero and use a fixed seed.",
        "make answers repeatable|get the same answer every time|make the output deterministic|get reproducible answers"
        "|fix the seed|avoid random answers",
        "deterministic output|repeatable answers|a seed option",
        "Why do answers differ?|Are the answers deterministic?|The answer is different each time.",
        "Two runs should print identical text, how?",
    ),
    _topic(
        "Set max_tokens in the request, or maxOutputTokens in the limits of a key.",
        "limit the length of the answer|get shorter answers|set a length limit|limit the output|set max_tokens"
        "|make answers shorter|raise the length limit|get longer answers",
        "a length limit|a limit of the output|maxOutputTokens",
        "The answer is too long.|The answer is cut off.|Why is the answer cut off?|The output stops in the middle."
        "|Why does the answer stop early?|My answer is too short.",
        "A reply ends in mid-sentence, which setting is it?",
    ),
    _topic(
        "Use a smaller model, a stronger quantization or a GPU to get more speed.",
        "make it faster|speed it up|get faster answers|improve the speed|improve the performance|get more tokens per second",
        "a fast mode|high speed|good performance",
        "Why is it so slow?|The model is slow.|It is too slow.|How fast is it?|Answers take too long.",
        "Replies take ages, what can be done?",
    ),
    # Tests and operation
    _topic(
        "Use scriptedEngine('Hello.') of @modelmount/core/testing as the engine. It answers without a model.",
        "test my app|write tests|test without a model|mock the model|test my routes|use a fake model|write unit tests"
        "|stub the model|test with Vitest|test with Jest|fake answers in tests",
        "a mock|a fake model|tests|a test engine|scriptedEngine|unit tests|a testing guide",
        "How to test?|Can I test without a model?|What is scriptedEngine?|How do I mock answers?|Can I run tests in CI?",
        "Answers should be fixed in my unit tests, what do I use?",
    ),
    _topic(
        "Use recordingEngine of @modelmount/core/testing: it records real answers once and replays them.",
        "record answers|replay answers|record real answers|use recordings|replay recorded answers in CI",
        "recordings|recorded answers|recordingEngine|replays",
        "Can I record answers?|What is recordingEngine?|How do recordings work?",
        "Can my pipeline play back what a real model said?",
    ),
    _topic(
        "Call llm.close({ drain: '10s' }) on SIGTERM. In the terminal, Ctrl-C stops modelmount serve.",
        "stop the server|shut down|shut {it} down|close the server|exit|stop {it} gracefully|shut down gracefully"
        "|end the model process|quit",
        "a graceful shutdown|a stop command|llm.close|a shutdown hook",
        "How to stop it?|How do I stop it?|What happens on SIGTERM?|What happens to running answers at shutdown?",
        "In what way do I end the app without breaking answers?",
    ),
    _topic(
        "The health routes are /livez, /readyz and /startupz. Mount them with healthRouter(llm).",
        "check the health|add a health check|use Kubernetes probes|know if the server is ready|mount the health routes"
        "|write a readiness probe",
        "health checks for Kubernetes|a health endpoint|/readyz|/livez|probes|a readiness route",
        "Is the server healthy?|Is there a health route?|Which URL tells if it is ready?",
        "What should a load balancer ask to see if the app is up?",
    ),
    _topic(
        "Serve with --metrics, or mount metricsRouter(llm). Prometheus reads /metrics.",
        "get metrics|use Prometheus|monitor the server|export metrics|use Grafana|monitor {it}|watch the load",
        "Prometheus|Grafana|a metrics endpoint|/metrics|monitoring|dashboards",
        "Are there metrics?|Where are the metrics?|How to monitor it?|Does it work with Prometheus?",
        "Our monitoring wants numbers from the server, where are they?",
    ),
    _topic(
        "Call registerTracing(llm) of @modelmount/core/tracing to get OpenTelemetry spans.",
        "get traces|use OpenTelemetry|trace requests|export spans|use tracing",
        "OpenTelemetry|tracing|traces|spans|Jaeger",
        "Is there tracing?|Does it support OpenTelemetry?|How to trace a call?",
        "Each call should appear as a span, how?",
    ),
    _topic(
        "Pass a logger, such as pino, to createLlm, or start modelmount serve with --access-log.",
        "see the logs|get logs|log requests|turn on logging|write logs|use pino|use winston|log every call",
        "logs|a log file|pino|winston|an access log|log output",
        "Where are the logs?|Why do I see no logs?|Nothing is logged.|How to log requests?",
        "Lines about each call should be printed, how?",
    ),
    _topic(
        "Start modelmount serve --console and open /console, or mount consoleRouter of @modelmount/console.",
        "open the console|use the console|see a dashboard|manage keys in the browser|open the web interface|open the admin page",
        "a console|a dashboard|a web interface|a UI|a GUI|an admin page|a web page|a playground",
        "Is there a UI?|Is there a web interface?|Where is the console?|Is there a dashboard?|Can I chat in the browser?",
        "Is there something to click on instead of commands?",
    ),
    _topic(
        "Run modelmount db backup FILE for SQLite, and pg_dump for PostgreSQL.",
        "back up the database|make a backup|save the keys|back up my data|restore a backup",
        "backups|a backup command|a restore command",
        "How to make a backup?|Where is the database?|Can I back up the keys?",
        "How are keys and usage saved in case the disk dies?",
    ),
    _topic(
        "Use the option database: a file for SQLite, or postgres://... for PostgreSQL. Keys, usage and batches need it.",
        "use PostgreSQL|use SQLite|set the database|store keys in Postgres|use a database|connect a database",
        "PostgreSQL|SQLite|a database|Postgres|MySQL",
        "Which database does it use?|Do I need a database?|Where are keys stored?|Which databases work?",
        "In what store do keys and usage live?",
    ),
    _topic(
        "Give all apps one PostgreSQL database. Keys, limits and usage are then shared by all machines.",
        "run {it} on several machines|scale {it}|share keys between servers|use several servers|run several instances"
        "|scale out|use a cluster|share limits between machines",
        "several machines|clusters|scaling|multiple instances|high availability|load balancing",
        "Can I run it on two servers?|Does it scale?|How to scale it?|How do several servers share keys?",
        "We have three hosts that need common keys, what is the setup?",
    ),
    _topic(
        "Use upstreamEngine({ url }) of @modelmount/core/upstream as the engine, or serve with --upstream gpu=URL.",
        "use vLLM|put vLLM behind {it}|use a remote model|use another server|use llama-server behind {it}"
        "|forward calls to another server|use a hosted model|use a GPU server|use OpenAI as the backend|use SGLang",
        "vLLM|upstream servers|remote models|a proxy mode|SGLang|hosted models|a backend on another machine",
        "Can it use vLLM?|Can the model run on another machine?|Can I use a remote model?|What is upstreamEngine?",
        "The models live on a GPU box elsewhere, how do calls get there?",
    ),
    _topic(
        "Use the recipes in docs/operations/deploy for Docker, Kubernetes, systemd and nginx.",
        "deploy {it}|use Docker|run {it} in Docker|run {it} in a container|deploy to Kubernetes|use systemd|use nginx"
        "|put {it} behind a proxy|run {it} in production",
        "Docker|a Docker image|Kubernetes|systemd|nginx|a Dockerfile|a Helm chart|deployment recipes",
        "How to deploy?|Is there a Docker image?|Does it run in a container?|How do I run it as a service?",
        "It should run as a container, where do I look?",
    ),
    _topic(
        "Use interceptors: createLlm({ interceptors: [{ name, before, after }] }). They can change or refuse each call.",
        "change every request|filter prompts|hide personal data|redact prompts|run code around each call|block some prompts"
        "|add a system prompt to every call|use an interceptor|moderate prompts|audit calls",
        "hooks|redaction|a content filter|guardrails|plugins|middleware for calls|moderation",
        "Can I change a request before the model sees it?|Is there a hook for each call?|Can I filter prompts?",
        "Phone numbers must be removed from each prompt, where do I do that?",
    ),
    _topic(
        "Run modelmount list to see the names, and modelmount pull NAME to get a model that is missing.",
        "fix model not found|fix the model not found error|find a missing model",
        "the model not found error",
        "Why is my model not found?|It says model not found.|The model does not exist.|My model is missing."
        "|The model was not found. Why?|404 model not found",
        "The server claims it does not know the model, what helps?",
    ),
    _topic(
        "Stop Ollama or choose another port, and start modelmount serve. It reads the same models, and clients need no change.",
        "switch from Ollama|move from Ollama|replace Ollama|migrate from Ollama|come from Ollama",
        "a migration from Ollama|an Ollama replacement",
        "Can it replace Ollama?|I use Ollama today.|Is it like Ollama?|What is different from Ollama?",
        "Today an Ollama daemon runs here: how do I swap it out?",
    ),
]
