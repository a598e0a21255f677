//! What can be said of an API: where its calls go, which members its bodies have, what its answers report.
//!
//! Not here: the APIs themselves (each has a file beside this one), what is made of a member (`call`, `usage`, `sse`).

/// One kind of call of an API.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// The name used in metrics (`gen_ai_operation_name`) and the access log.
    pub(crate) name: &'static str,
    /// Whose API it is, as OpenTelemetry names providers.
    pub(crate) provider: &'static str,
    /// The paths below `/v1/`, which take POST.
    pub(crate) paths: &'static [&'static str],
    pub(crate) body: Body,
    /// The members of the body that are read. A body is read for those of every dialect.
    pub(crate) members: &'static [(Name, &'static str)],
    /// The members of the answer, and of the events of one that is streamed.
    pub(crate) reports: &'static [(Name, &'static str)],
    pub(crate) answers_json: bool,
    pub(crate) generates: bool,
    pub(crate) is_metered: bool,
    pub(crate) reports_usage: bool,
    pub(crate) errors: ErrorFormat,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// JSON that is read.
    Json,
    /// The same of a call whose path names its model.
    NamedJson,
    /// A form that is read, or JSON in its place.
    Form,
    /// Nothing, or something that is not read.
    Unread,
}

/// What a member, or a path to one, says.
#[derive(Clone, Copy)]
pub(crate) enum Name {
    // Of a body, in the order of their places among what is asked for.
    Model,
    Stream,
    StreamOptions,
    /// Whether the stream shall report its usage: it does so only when asked.
    IncludeUsage,
    MaxTokens,
    MaxCompletionTokens,
    MaxOutputTokens,
    N,
    Background,
    PreviousResponse,
    Conversation,
    Container,
    BestOf,
    Prompt,
    /// The cap that llama.cpp has besides those of OpenAI, and may prefer to them.
    NPredict,
    /// The least tokens of an answer, whatever else caps it.
    MinTokens,
    /// How many answers are followed at once, where an engine searches them for the best.
    BeamWidth,
    /// Whether the answer shall be fetched later (xAI).
    Deferred,
    /// The gate's own count of a prompt goes by it, and nothing else does.
    Counted,
    /// Who is behind the call, as the call itself says; read where that is asked for.
    User,
    /// What the provider keeps of earlier calls, as Google's calls name it.
    Cached,

    // Of an answer that is one document: where its usage stands.
    Usage,

    // Of a usage object. `…Details` and `CacheWrites` are objects, and what follows them stands in them.
    PromptTokens,
    CompletionTokens,
    /// Of a prompt's sum what its own member leaves out.
    PromptBeside,
    /// Reasoning that the completion's own member leaves out of its sum.
    ReasoningBeside,
    TotalTokens,
    PromptDetails,
    CachedTokens,
    /// In a prompt's details, of what its cached tokens are.
    CachedDetails,
    /// Of the prompt, beside its details, as some providers have it.
    CachedBeside,
    /// Of the prompt, in its details.
    WrittenTokens,
    CompletionDetails,
    ReasoningTokens,
    /// In both details.
    AudioTokens,
    /// A list by what the tokens are of.
    PromptModalities,
    CompletionModalities,
    /// Beside the tokens of the prompt.
    CacheRead,
    CacheStored,
    CacheWrites,
    /// A list by how long what was written is kept.
    CacheWriteList,
    /// A list of the goes in which a message was made, with counts of their own.
    Iterations,
    /// Objects with counts of their own: what was read and made, and what of it is billed.
    Units,
    /// In them, beside the tokens.
    SearchUnits,
    CacheWrite5m,
    CacheWrite1h,

    // Of an event.
    /// The list that is empty in one which exists only to report usage.
    EventChoices,
    EventUsage,
    /// In one that begins a stream: its completion is not made yet.
    BeginningUsage,
    EventError,
    /// All the data of the one that ends the stream.
    EndMark,
}

/// Whose clients read an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ErrorFormat {
    /// OpenAI's.
    #[default]
    OpenAi,
    /// Anthropic's: theirs know an error by its `type`, of a list of their own.
    Anthropic,
    /// Google's: theirs know an error by its `status`, of a list of their own.
    Google,
}

impl Dialect {
    /// A call whose body is JSON and names a model, and whose answer is JSON.
    pub(super) const JSON: Self = Self {
        name: "",
        provider: "openai",
        paths: &[],
        body: Body::Json,
        members: &[(Name::Model, "model")],
        reports: &[(Name::Usage, "usage")],
        answers_json: true,
        generates: false,
        is_metered: true,
        reports_usage: true,
        errors: ErrorFormat::OpenAi,
    };

    /// A form, whose answer may be a text.
    pub(super) const FORM: Self = Self {
        body: Body::Form,
        answers_json: false,
        ..Self::JSON
    };

    /// A call of which nothing is read.
    pub(super) const UNREAD: Self = Self {
        body: Body::Unread,
        members: &[],
        reports: &[],
        is_metered: false,
        reports_usage: false,
        ..Self::FORM
    };

    /// What it calls this, the first time and after.
    pub(super) const fn name_of(&self, name: Name, mut nth: usize) -> Option<&'static str> {
        let mut lists = [self.members, self.reports];
        while let [[(is, text), rest @ ..], _] | [[], [(is, text), rest @ ..]] = lists {
            lists = match lists {
                [[], _] => [&[], rest],
                [_, reports] => [rest, reports],
            };
            if *is as u8 == name as u8 {
                if nth == 0 {
                    return Some(text);
                }
                nth -= 1;
            }
        }
        None
    }
}
