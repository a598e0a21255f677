//! Why calls of files and batches are refused: words, statuses and codes.
//!
//! Not here: other refusals (`refusal`), how the answer is written (`reply`).

use wire::batch::Api;

/// Why a call of files or batches is refused.
#[derive(Debug, thiserror::Error)]
pub enum BatchRefusal {
    /// A call of files or batches, which no route of the workload keeps for its API.
    #[error(
        "{call}: files and batches are kept on a route that says `batches`, and no route of this workload says it{}",
        api.map_or("", |api| match api {
            Api::OpenAi => " for OpenAI's API (`batches: { api: openai }`)",
            Api::Anthropic => " for Anthropic's API (`batches: { api: anthropic }`)",
        })
    )]
    NoRoute {
        /// Method and path; visible ASCII, of bounded length.
        call: String,
        /// Whose API alone has it.
        api: Option<Api>,
    },
    /// A call of a batch may not be made, or cannot be read.
    #[error("call {line} of the batch is refused: {says}")]
    Call {
        /// Its number, from 1: of a file that of its line.
        line: usize,
        /// Why.
        says: Box<str>,
    },
    /// The upload of a file cannot be read, or the file is for what none may be.
    #[error("{says}")]
    Upload {
        /// What of it.
        says: Box<str>,
    },
    /// A file or a batch is not there, or is another's.
    #[error("no {what} of this id is there for you")]
    NotKept {
        /// Which of the two.
        what: &'static str,
    },
    /// As many batches of the workload as may be are not charged yet.
    #[error(
        "{most} batches of this workload are not counted yet, which is as many as may be; the next one is made once one of them is over and counted"
    )]
    TooMany {
        /// How many.
        most: u32,
    },
    /// The workload keeps as many files or batches as may be.
    #[error("this workload keeps as many files and batches as may be; remove some")]
    TooManyKept,
    /// What is to be removed tells what a batch used, which is not counted yet.
    #[error(
        "this holds the result of a batch that is not counted yet; it can be removed once the batch is over and counted"
    )]
    Uncounted,
    /// Nobody can say whose files and batches are now.
    #[error("the gateway cannot look up now whose files and batches are")]
    Unavailable,
    /// The caller may ask for this model, and not in batches.
    #[error(
        "model {model:?} is available to this workload and not in batches: the route that takes it is not the one with `batches`"
    )]
    ModelNotBatched {
        /// The model.
        model: String,
    },
    /// It was made at its provider, and the disk took no note of whose it is.
    #[error(
        "this was made at the provider, and the gateway's disk did not take whose it is: nobody can reach it here; sent again, it would be made once more"
    )]
    MadeNotKept,
}

impl BatchRefusal {
    /// Its status, type and code.
    pub(super) fn class(&self) -> (u16, &'static str, &'static str) {
        let invalid = "invalid_request_error";
        match self {
            Self::NoRoute { .. } => (404, invalid, "operation_not_allowed"),
            Self::Call { .. } => (400, invalid, "batch_call_refused"),
            Self::Upload { .. } => (400, invalid, "upload_invalid"),
            Self::NotKept { what: "file" } => (404, invalid, "file_not_found"),
            Self::NotKept { .. } => (404, invalid, "batch_not_found"),
            Self::TooMany { .. } => (429, "rate_limit_error", "batches_uncounted"),
            Self::TooManyKept => (429, "rate_limit_error", "too_many_kept"),
            Self::Uncounted => (409, invalid, "batch_uncounted"),
            Self::ModelNotBatched { .. } => (404, invalid, "model_not_found"),
            Self::MadeNotKept => (500, "server_error", "made_not_kept"),
            Self::Unavailable => (503, "server_error", "batches_unavailable"),
        }
    }
}
