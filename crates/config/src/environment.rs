//! No document: the providers whose keys are in the environment.
//!
//! What the environment means is written out as a document and lowered like any other, so that
//! `/config` shows what to put in a file when one is wanted.
//! Invariant: the document names variables and never holds what is in them.

use std::fmt::Write as _;
use std::path::Path;

use crate::document::parse_with;
use crate::fault::{Fault, Faults};
use crate::lower::{Loaded, OR_AT_ROOT};
use crate::servers::EditorServers;
use crate::sources::Sources;

/// A provider, and how its variables are named.
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    key: &'static str,
    url: &'static str,
    url_default: &'static str,
    /// The provider's own SDK leaves `/v1` out of the variable.
    url_lacks_root: bool,
    /// What it speaks.
    dialect: &'static str,
    /// An address of one's own may be an engine's, which speaks more than the provider.
    speaks_it_anywhere: bool,
    pub(crate) models: &'static [&'static str],
}

const PROVIDERS: &[Provider] = &[
    Provider {
        name: "openai",
        key: "OPENAI_API_KEY",
        url: "OPENAI_BASE_URL",
        url_default: "https://api.openai.com/v1",
        url_lacks_root: false,
        dialect: "[openai, responses]",
        speaks_it_anywhere: false,
        models: &[
            "gpt-*",
            "chatgpt-*",
            "o1*",
            "o3*",
            "o4*",
            "codex-*",
            "text-embedding-*",
            "omni-*",
            "dall-e-*",
            "whisper-*",
            "tts-*",
        ],
    },
    Provider {
        name: "anthropic",
        key: "ANTHROPIC_API_KEY",
        url: "ANTHROPIC_BASE_URL",
        url_default: "https://api.anthropic.com/v1",
        url_lacks_root: true,
        dialect: "anthropic",
        speaks_it_anywhere: true,
        models: &["claude-*"],
    },
    Provider {
        name: "gemini",
        key: "GEMINI_API_KEY",
        url: "GEMINI_BASE_URL",
        url_default: "https://generativelanguage.googleapis.com/v1beta/openai",
        url_lacks_root: false,
        dialect: "openai",
        speaks_it_anywhere: false,
        models: &["gemini-*", "gemma-*"],
    },
];

/// Where it listens may be said too, because there is no other place to say it.
const HEAD: &str = "\
listen:
  data: \"${TOLLGATE_DATA:-127.0.0.1:1975}\"
  admin: \"${TOLLGATE_ADMIN:-127.0.0.1:1976}\"
";

/// A gate for one workload, `default`, which a caller need not name, in front of each provider
/// whose key or address is in the environment; models go to the provider that makes them, the
/// rest to the first.
///
/// # Errors
/// [`Faults`] when no such variable is set, or one of them does not make sense.
pub fn from_environment(sources: &dyn Sources) -> Result<Loaded, Faults> {
    from_environment_with(None, sources)
}

/// Likewise, with servers of tools, which the workload may use; then no provider is needed.
///
/// # Errors
/// [`Faults`].
pub fn from_environment_with(
    servers: Option<&EditorServers>,
    sources: &dyn Sources,
) -> Result<Loaded, Faults> {
    let path = Path::new("environment");
    let present = present(sources);
    if present.is_empty() && servers.is_none() {
        let fault = Fault {
            file: None,
            path: String::new(),
            line: None,
            says: "there is no configuration file and no provider's key in the environment".into(),
            hint: "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY (or OPENAI_BASE_URL \
                   for an engine that asks for no key), let `tollgate init` write tollgate.yaml, or name \
                   a file with -c FILE"
                .into(),
        };
        return Err(Faults {
            file: path.into(),
            faults: vec![fault],
            warnings: Vec::new(),
            watched: vec![],
            key_files: Vec::new(),
        });
    }
    let text = document(&present, sources);
    let mut loaded = parse_with(path, text.as_bytes(), servers, sources)
        .map_err(|faults| by_variable(faults, &text))?;
    loaded.watched.retain(|watched| watched != path);
    Ok(loaded)
}

/// Faults that name the variable in place of a line, since nobody wrote the lines.
fn by_variable(mut faults: Faults, document: &str) -> Faults {
    let own = faults.faults.iter_mut().chain(&mut faults.warnings);
    for fault in own.filter(|fault| fault.file.is_none()) {
        let line = fault.line.take().and_then(|line| line.checked_sub(1));
        let line = line.and_then(|before| document.lines().nth(before));
        if let Some(name) = line.and_then(variable) {
            name.clone_into(&mut fault.path);
        }
        if let Some(hint) = fault.hint.strip_suffix(OR_AT_ROOT) {
            fault.hint = format!("{hint}; only a file can say that it is the root of the address");
        }
    }
    faults
}

/// The variable that a line of a document names.
fn variable(line: &str) -> Option<&str> {
    let (_, named) = line.split_once("${").or_else(|| line.split_once("env: "))?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    named.split(|c| !is_of_name(c)).next()
}

/// The providers of which a variable is set.
pub(crate) fn present(sources: &dyn Sources) -> Vec<&'static Provider> {
    PROVIDERS
        .iter()
        .filter(|p| set(sources, p.key).is_some() || set(sources, p.url).is_some())
        .collect()
}

/// Whether the catalogue has the models of one of these: of several backends none is asked for its list, and what has a price is told.
pub(crate) fn has_prices(present: &[&Provider], sources: &dyn Sources) -> bool {
    let is_at_home = |provider: &&Provider| set(sources, provider.url).is_none();
    present.iter().any(is_at_home)
}

/// Models of a provider, by how their names begin; none where it is not one of these.
pub(crate) fn models_of(name: &str) -> &'static [&'static str] {
    let provider = PROVIDERS.iter().find(|provider| provider.name == name);
    provider.map_or(&[], |provider| provider.models)
}

fn set(sources: &dyn Sources, name: &str) -> Option<String> {
    sources.var(name).filter(|value| !value.is_empty())
}

fn document(present: &[&Provider], sources: &dyn Sources) -> String {
    let mut text = String::from(HEAD);
    text.push_str(match set(sources, "TOLLGATE_TRUST") {
        Some(_) => "identity: { default: default, trust: \"${TOLLGATE_TRUST}\" }\n",
        None => "identity: { default: default }\n",
    });
    if present.is_empty() {
        return text;
    }
    text.push_str("backends:\n");
    for p in present {
        p.write(&mut text, sources, None);
    }
    text.push_str("routes:\n");
    if let [first, _, ..] = present {
        for p in present {
            let models: Vec<String> = p.models.iter().map(|m| format!("\"{m}\"")).collect();
            let _ = writeln!(
                text,
                "  - {{ workload: default, match: {{ model: [{}] }}, backend: {} }}",
                models.join(", "),
                p.name
            );
        }
        let _ = writeln!(
            text,
            "  - {{ name: otherwise, workload: default, backend: {} }}",
            first.name
        );
        if has_prices(present, sources) {
            text.push_str("prices: { catalogue: builtin }\n");
        }
    } else if let [only] = present {
        let _ = writeln!(text, "  - {{ workload: default, backend: {} }}", only.name);
    }
    text
}

impl Provider {
    /// Its entry among the backends of a document. One that is kept for later quotes the address, where the variable leaves out the API's root:
    /// it may have another value then.
    pub(crate) fn write(
        &self,
        text: &mut String,
        sources: &dyn Sources,
        kept: Option<fn(&str) -> String>,
    ) {
        let written = set(sources, self.url);
        let is_its_own = written.is_none();
        let rootless = |url: &String| {
            let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
            !rest.trim_end_matches('/').contains('/')
        };
        let root = if self.url_lacks_root && written.as_ref().is_some_and(rootless) {
            "/v1"
        } else {
            ""
        };
        let separate = match &written {
            Some(url) if url.ends_with('/') => root.trim_start_matches('/'),
            _ => root,
        };
        let url = match (kept, &written) {
            (Some(quoted), Some(url)) if !root.is_empty() => quoted(&format!("{url}{separate}")),
            _ => format!("\"${{{}:-{}}}{separate}\"", self.url, self.url_default),
        };
        let _ = write!(text, "  {}:\n    url: {url}\n", self.name);
        if set(sources, self.key).is_some() {
            let _ = writeln!(text, "    credential: {{ env: {} }}", self.key);
        }
        if is_its_own || self.speaks_it_anywhere {
            let _ = writeln!(text, "    dialect: {}", self.dialect);
        } else if kept.is_some() {
            text.push_str("    # Where it has OpenAI's API alone, calls in others are translated: `dialect: openai`.\n");
        }
    }
}
