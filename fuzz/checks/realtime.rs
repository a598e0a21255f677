//! What must hold for any message on a WebSocket of the Realtime API.
//!
//! An event that can be judged is the same event once its model and its id are said anew, and says those; a server's event that tells what an
//! answer used tells nothing that cannot be.
//! Not here: what is made of an event.

use wire::call::{RealtimeAsked, RealtimeTold, media_bytes};
use wire::usage::{Reading, TOKEN_LIMIT};

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    if let Ok(asked) = RealtimeAsked::read(input) {
        assert_eq!(asked.edited(input, None, None), input);
        let model = asked.model.as_ref().map(|_| "another");
        let edited = asked.edited(input, model, Some("an id"));
        let again = RealtimeAsked::read(&edited).expect("it is an event yet");
        assert_eq!(
            (again.id.as_deref(), again.model.as_deref()),
            (Some("an id"), model)
        );
        assert_eq!(
            (&again.name, &again.transcription, again.cap),
            (&asked.name, &asked.transcription, asked.cap)
        );
    }
    let usage = match RealtimeTold::read(input) {
        Some(RealtimeTold::Ended { usage, .. } | RealtimeTold::Transcribed { usage, .. }) => usage,
        _ => return,
    };
    if let Reading::Valid(usage) = *usage {
        let parts = [usage.cached, usage.audio_prompt];
        let whole = usage.prompt.unwrap_or(0);
        assert!(whole <= 8 * TOKEN_LIMIT, "{usage:?}");
        assert!(
            usage.prompt.is_none() || parts.iter().flatten().all(|part| *part <= whole),
            "{usage:?}"
        );
    }
    let _looked = media_bytes(input);
}
