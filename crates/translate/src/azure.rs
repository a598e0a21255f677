//! OpenAI's API as Azure has it: the same bodies, at a path for each deployment of a model
//! (<https://learn.microsoft.com/azure/ai-services/openai/reference>).
//!
//! Not here: its form without deployments (`/openai/v1`), which is OpenAI's own, and the version in the query (`config`).

use wire::dialect::Operation;
use wire::dialect::gemini::escaped;
use wire::filter::Request;

use crate::call::Call;
use crate::fault::{Fault, Result};
use crate::openai;

pub(crate) const SPEAKS: &str = "azure";
/// The header in which it takes keys.
pub(crate) const KEY_HEADER: &str = "api-key";

/// What stands below a deployment of such a call; of a form, several of which are one operation, what its path says.
const fn below_deployment(asked: Operation) -> Option<&'static str> {
    match asked {
        Operation::Chat => Some(openai::PATH),
        Operation::Completions => Some("/completions"),
        Operation::Embeddings => Some("/embeddings"),
        Operation::Images => Some("/images/generations"),
        Operation::Speech => Some("/audio/speech"),
        Operation::ImageEdits | Operation::Transcriptions => Some(""),
        _ => None,
    }
}

/// Whether a call stands below a deployment.
pub(crate) const fn moves(asked: Operation) -> bool {
    below_deployment(asked).is_some()
}

/// Moves a call to its deployment; the body passes as it came.
pub(crate) fn pass(asked: Operation, request: &mut Request) -> Result<()> {
    let Some(below) = below_deployment(asked) else {
        return Ok(());
    };
    match request.model.as_deref() {
        Some(model) => {
            let below = if below.is_empty() {
                &*request.below
            } else {
                below
            };
            request.path = Some(deployed(model, below).into());
            Ok(())
        }
        _ => {
            let says = format!(
                "the backend speaks azure, where a path names the model, and nothing tells the model of this call of {}",
                asked.words()
            );
            Err(Fault::new(says))
        }
    }
}

/// Writes the request that says this call.
pub(crate) fn write(call: Call<'_>, request: &mut Request) -> Result<()> {
    let path = deployed(&call.model, openai::PATH);
    openai::write_call::write(call, request)?;
    request.path = Some(path.into());
    Ok(())
}

fn deployed(model: &str, below: &str) -> String {
    format!("/deployments/{}{below}", escaped(model))
}
