//! How a backend's endpoints share its calls.
//!
//! Not here: what it becomes (`lower::balancing`), how an endpoint is chosen (`policy::balancing`).

use policy::balancing::By;
use serde_json::{Value as Json, json};

use crate::decode::{At, Problem, ShortOrFull, Written, record};
use crate::scalar::{Brief, FailsOpen, File, Flag, Span, Trust, words};
use crate::target::Target;

/// The policy alone, or with more.
pub(crate) type Balancing = ShortOrFull<BalancingPolicy, BalancingAt>;

words! {
    /// How endpoints share calls; `None`: by chance, as their weights say.
    BalancingPolicy(Option<By>): "is no way to share calls" => {
        "random" => None,
        "round_robin" => Some(By::RoundRobin),
        "least_request" => Some(By::LeastRequest),
        "least_load" => Some(By::LeastLoad),
        "prefix_cache" => Some(By::PrefixCache),
    }
}

record! {
    /// How endpoints share calls.
    BalancingAt {
        /// random, round_robin, least_request (the fewest calls of this gate), least_load (by engines' own metrics too) or prefix_cache (the same, and what each has seen of the prompt). Default random.
        optional policy: At<BalancingPolicy>,
        /// The path of engines' metrics at each address, or off. Default /metrics for least_load and prefix_cache, and off for the others.
        optional metrics: At<MetricsPath>,
        /// How often each engine is asked for them, 10ms to 1m. Default 200ms.
        optional every: At<Brief>,
        /// Who picks an address for each call, as an InferencePool's endpoint picker does. The policy is for calls that it does not pick for.
        optional picker: EndpointPicker,
    }
}

record! {
    /// An endpoint picker of the Gateway API Inference Extension, asked over Envoy's ext_proc.
    EndpointPicker {
        /// Its address.
        required grpc: At<Target>,
        /// How long a call waits for it, at most 2s. Default 500ms.
        optional timeout: At<Span>,
        /// What becomes of a call where it does not answer: deny (the next backend, or 503) or allow (the policy chooses). Default deny.
        optional on_failure: At<FailsOpen>,
        /// PEM file with the roots to trust there, in place of the system's.
        optional ca: At<File>,
        /// anyone: its certificate is not checked, as of pickers that make one of their own when they start.
        optional trust: At<Trust>,
        /// Header fields x-… that it says of an answer go to the client, and each answer waits for them, a second at most. Default false.
        optional response_headers: At<Flag>,
    }
}

/// Where an address has its metrics; `None`: they are not asked for.
pub(crate) struct MetricsPath(pub(crate) Option<String>);

impl Written for MetricsPath {
    const PATTERN: &'static str = r"^(off|/[!-~]{0,1023})$";

    fn read(text: &str) -> Result<Self, Problem> {
        let is_path = text.starts_with('/') && text.len() <= 1024;
        match text {
            "off" => Ok(Self(None)),
            _ if is_path && text.bytes().all(|b| b.is_ascii_graphic() && b != b'#') => {
                Ok(Self(Some(text.to_owned())))
            }
            _ => Err(Problem::new(
                "is neither off nor a path",
                "write /metrics, where vLLM has them, or off",
            )),
        }
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": Self::PATTERN })
    }
}
