//! Another gateway's configuration as a document of this gate: LiteLLM's proxy, Portkey's, and agentgateway's.
//!
//! Invariant: what is made is one that [`crate::parse_document`] takes, once its variables are set. It holds no secret: one
//! that stands in the other file becomes the name of a variable. What has no counterpart is said in a comment, never dropped
//! in silence.
//! Not here: printing it (`tollgate import`).

mod agentgateway;
mod budget;
mod comment;
mod credential;
mod deployment;
mod left;
mod plan;
mod portkey;
mod price;
mod provider;
mod read;
mod settings;
mod wildcard;
mod write;

use std::path::Path;

use crate::decode::Findings;
use crate::document;
use crate::fault::{Fault, Faults};
use crate::sources::Sources;

pub use agentgateway::import_agentgateway;
use plan::Plan;
pub use portkey::import_portkey;
use read::Section;
use settings::Settings;

/// A document that was made, and what to say beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The document.
    pub text: String,
    /// What somebody has to see to: secrets that stand in the other file, deployments that could not be taken over.
    pub warnings: Vec<Fault>,
    /// How many settings have no counterpart; comments of the document name them.
    pub left_out: usize,
}

/// Makes a document of a configuration of LiteLLM's proxy.
///
/// # Errors
/// [`Faults`] where it cannot be read, or nothing of it can be taken over.
pub fn import_litellm(path: &Path, sources: &dyn Sources) -> Result<Imported, Faults> {
    let bytes = document::bytes_of(path, sources)?;
    let root = document::tree_of(path, &bytes).map_err(without_our_fields)?;
    let mut findings = Findings::default();
    let made = Section::open(&root, "", &mut findings).and_then(|root| {
        let settings = Settings::read(&root, &mut findings);
        let deployments = deployment::all(&root, &settings, &mut findings)?;
        let plan = Plan::make(deployments, &settings, &mut findings);
        if plan.routes.is_empty() && findings.faults.is_empty() {
            let says = "none of these deployments can be reached from here";
            let place = root.place_of("model_list");
            findings.fault(&place, says, "the warnings say why");
        }
        Some(write::document(path, &plan, &settings))
    });
    imported(path, findings, made)
}

/// What was made, with how much of the other file is left out, or all that is wrong, in the order of the file.
fn imported(
    path: &Path,
    findings: Findings,
    made: Option<(String, usize)>,
) -> Result<Imported, Faults> {
    let Findings {
        mut faults,
        mut warnings,
    } = findings;
    faults.sort_by_key(|fault| fault.line);
    warnings.sort_by_key(|fault| fault.line);
    match made {
        Some((text, left_out)) if faults.is_empty() => Ok(Imported {
            text,
            warnings,
            left_out,
        }),
        _ => Err(Faults {
            file: path.to_owned(),
            faults,
            warnings,
            watched: Vec::new(),
            key_files: Vec::new(),
        }),
    }
}

/// An empty file is told which fields it lacks: those of the gate's own documents. And a `*` is what people forget to quote.
fn without_our_fields(mut faults: Faults) -> Faults {
    for fault in &mut faults.faults {
        if fault.hint.contains("`backends`") {
            fault.hint = "name a configuration of LiteLLM's proxy".into();
        }
        if fault.says.contains("anchor or alias") {
            fault.hint = "a name that begins with `*` is written in quotes".into();
        }
    }
    faults
}

#[cfg(test)]
mod tests;
