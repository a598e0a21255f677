//! Providers by the prefixes of their models: which API each speaks, where, and in which variable its key is looked for.
//!
//! Not here: what a deployment makes of them (`deployment`).

/// A provider with an API that a backend can speak.
pub(super) struct Provider {
    /// What stands before the `/` of a model.
    pub(super) prefixes: &'static [&'static str],
    /// What its backend is called.
    pub(super) name: &'static str,
    pub(super) dialect: &'static str,
    /// The root of its API; empty where a deployment has to say it.
    pub(super) root: &'static str,
    /// The variable that says the root where a deployment does not.
    pub(super) root_variable: &'static str,
    /// What the other gateway adds to the root that a deployment says.
    pub(super) adds: &'static str,
    /// The variable of its key; empty where none is sent unless a deployment says one.
    pub(super) key: &'static str,
    pub(super) kind: Kind,
}

/// Providers whose addresses and credentials have a form of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Azure,
    Vertex,
    Bedrock,
}

const fn kin(
    prefixes: &'static [&'static str],
    name: &'static str,
    root: &'static str,
    key: &'static str,
) -> Provider {
    Provider {
        prefixes,
        name,
        dialect: "openai",
        root,
        root_variable: "",
        adds: "",
        key,
        kind: Kind::Plain,
    }
}

/// Engines of one's own, whose address a deployment says.
const fn own(
    prefixes: &'static [&'static str],
    name: &'static str,
    root_variable: &'static str,
    adds: &'static str,
) -> Provider {
    Provider {
        root_variable,
        adds,
        ..kin(prefixes, name, "", "")
    }
}

const fn of_kind(
    prefixes: &'static [&'static str],
    name: &'static str,
    key: &'static str,
    kind: Kind,
) -> Provider {
    Provider {
        kind,
        ..kin(prefixes, name, "", key)
    }
}

const PROVIDERS: &[Provider] = &[
    kin(
        &[
            "openai",
            "text-completion-openai",
            "custom_openai",
            "openai_like",
        ],
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
    ),
    Provider {
        dialect: "anthropic",
        adds: "/v1",
        ..kin(
            &["anthropic", "anthropic_text"],
            "anthropic",
            "https://api.anthropic.com/v1",
            "ANTHROPIC_API_KEY",
        )
    },
    kin(
        &["gemini"],
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
    ),
    of_kind(
        &["azure", "azure_text"],
        "azure",
        "AZURE_API_KEY",
        Kind::Azure,
    ),
    of_kind(&["vertex_ai", "vertex_ai_beta"], "vertex", "", Kind::Vertex),
    of_kind(
        &["bedrock", "bedrock_converse"],
        "bedrock",
        "",
        Kind::Bedrock,
    ),
    kin(
        &["groq"],
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
    ),
    kin(
        &["mistral", "codestral"],
        "mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
    ),
    kin(
        &["deepseek"],
        "deepseek",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
    ),
    kin(
        &["together_ai"],
        "together",
        "https://api.together.xyz/v1",
        "TOGETHERAI_API_KEY",
    ),
    kin(
        &["fireworks_ai"],
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_AI_API_KEY",
    ),
    kin(
        &["openrouter"],
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
    ),
    kin(&["xai"], "xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    kin(
        &["perplexity"],
        "perplexity",
        "https://api.perplexity.ai",
        "PERPLEXITYAI_API_KEY",
    ),
    kin(
        &["cerebras"],
        "cerebras",
        "https://api.cerebras.ai/v1",
        "CEREBRAS_API_KEY",
    ),
    kin(
        &["deepinfra"],
        "deepinfra",
        "https://api.deepinfra.com/v1/openai",
        "DEEPINFRA_API_KEY",
    ),
    kin(
        &["nvidia_nim"],
        "nvidia-nim",
        "https://integrate.api.nvidia.com/v1",
        "NVIDIA_NIM_API_KEY",
    ),
    kin(
        &["sambanova"],
        "sambanova",
        "https://api.sambanova.ai/v1",
        "SAMBANOVA_API_KEY",
    ),
    kin(
        &["cohere", "cohere_chat"],
        "cohere",
        "https://api.cohere.ai/compatibility/v1",
        "COHERE_API_KEY",
    ),
    kin(
        &["moonshot"],
        "moonshot",
        "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY",
    ),
    Provider {
        adds: "/v1",
        ..kin(
            &["huggingface"],
            "huggingface",
            "https://router.huggingface.co/v1",
            "HUGGINGFACE_API_KEY",
        )
    },
    Provider {
        root: "http://localhost:11434/v1",
        ..own(&["ollama", "ollama_chat"], "ollama", "", "/v1")
    },
    own(&["hosted_vllm", "vllm"], "vllm", "HOSTED_VLLM_API_BASE", ""),
    own(&["lm_studio"], "lm-studio", "LM_STUDIO_API_BASE", ""),
    own(&["llamafile"], "llamafile", "LLAMAFILE_API_BASE", ""),
    own(&["xinference"], "xinference", "XINFERENCE_API_BASE", ""),
    own(&["litellm_proxy"], "litellm", "LITELLM_PROXY_API_BASE", ""),
    own(&["databricks"], "databricks", "DATABRICKS_API_BASE", ""),
];

/// The provider of a prefix.
pub(super) fn of_prefix(prefix: &str) -> Option<&'static Provider> {
    let mut providers = PROVIDERS.iter();
    providers.find(|provider| provider.prefixes.contains(&prefix))
}

/// The provider of a model without a prefix, as the other gateway knows it: by how its name begins.
pub(super) fn of_bare(model: &str) -> Option<&'static Provider> {
    const STARTS: &[(&str, &str)] = &[
        ("gpt-", "openai"),
        ("chatgpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("codex-", "openai"),
        ("ft:", "openai"),
        ("text-", "openai"),
        ("omni-", "openai"),
        ("dall-e-", "openai"),
        ("whisper-", "openai"),
        ("tts-", "openai"),
        ("computer-use", "openai"),
        ("davinci", "openai"),
        ("babbage", "openai"),
        ("claude-", "anthropic"),
        ("gemini-", "vertex_ai"),
        ("command-", "cohere"),
    ];
    let (_, prefix) = STARTS.iter().find(|(start, _)| model.starts_with(start))?;
    of_prefix(prefix)
}

/// Models of a provider that can be told by how they begin.
pub(super) fn models(provider: &Provider) -> &'static [&'static str] {
    crate::environment::models_of(provider.name)
}
