//! OpenAI's Responses API (<https://platform.openai.com/docs/api-reference/responses>), as clients speak it: Codex speaks nothing else.
//!
//! What a backend thought comes back to it by a reasoning item. What it signed travels in `encrypted_content`, which clients send back
//! as it is, and says whose it is: no other provider is told it.
//! Not here: calls made into this dialect. A backend that speaks it gets them as they came.

mod document;
mod echo;
mod freeform;
mod item;
mod made;
pub(crate) mod read_call;
mod read_items;
mod read_tools;
mod sealed;
pub(crate) mod write_answer;

pub(crate) const SPEAKS: &str = "responses";
