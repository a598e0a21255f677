//! The members of an OpenAI-style request body, or the fields of a form, that policy reads, and the edits that policy makes.
//!
//! Invariant: a member is read exactly as the engine will read it, or the call is refused: a name that
//! appears twice or in other letters, a number that is not a plain integer and an unusable model name are
//! all faults.
//! Not here: the grammar (`json`), what the gate does with a call (`policy`).

mod besides;
mod cursor;
mod elsewhere;
mod event;
mod fault;
mod form;
mod going_on;
mod head;
mod inner_models;
mod inside;
mod items;
mod named;
mod realtime;
mod scan;
mod splice;
mod stored;
mod upload;
mod user;
mod whole;

pub use besides::Besides;
pub use elsewhere::is_prompt_elsewhere;
pub use event::{ClientEvent, Ended, ends_call, error_event, error_event_of};
pub use fault::{CallFault, CallFaultKind};
pub use form::{Boundary, FormFault};
pub use going_on::GoingOn;
pub use head::{CallHead, IncludeUsage, Prompts, StreamOptions};
pub use inside::{FoundInside, Inside, Minds};
pub use items::ItemPage;
pub use realtime::{
    Cap, NoEvent, RealtimeAsked, RealtimeTold, media_bytes, realtime_error, stored_in,
};
pub use scan::CallScanner;
pub use splice::{Splice, apply, spliced_len, splices};
pub use stored::address;
pub use upload::{Upload, UploadFault};

#[cfg(test)]
mod tests;
