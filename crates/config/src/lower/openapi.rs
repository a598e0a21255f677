//! `mcp.servers.….openapi`: HTTP APIs whose operations are tools.
//!
//! Invariant: what a description leaves out as a tool is named; where its API is follows from a file's own text or from what the document
//! says, and never from a text that was fetched, but for the path.
//! Not here: what a description says (`openapi`, the crate), fetching it (`tollgate`).

use std::sync::Arc;

use openapi::{Api, DESCRIPTION_BYTES_MAX, Description, Left, Methods, Remote, Server};
use policy::mcp::Described;
use policy::snapshot::Snapshot;

use super::backend::Serves;
use crate::decode::{At, Place, Written};
use crate::host::ToolDescription;
use crate::scalar::{DescriptionAt, File, Name, ServerName};
use crate::schema::mcp::McpServer;
use crate::target::Target;

/// Most operations that are named one by one where they are left out.
const NAMED_MAX: usize = 20;

impl super::Lowering<'_> {
    /// The backend of a server that is no command; and what describes it, where it is an HTTP API.
    pub(super) fn described(
        &mut self,
        name: &At<ServerName>,
        label: &At<Name>,
        written: &McpServer,
        snapshot: &mut Snapshot,
    ) -> Option<Arc<dyn Described>> {
        let of_descriptions = [
            ("base", !written.base.is_absent()),
            ("methods", !written.methods.is_absent()),
        ];
        let Some(at) = written.openapi.get() else {
            let said = of_descriptions.iter().filter(|(_, is_said)| *is_said);
            let said: Vec<&str> = said.map(|(member, _)| *member).collect();
            if !said.is_empty() && written.openapi.is_absent() {
                let says = format!("has no openapi, and says {}", said.join(", "));
                self.fault(&name.place, says, "write its openapi, or leave that out");
            }
            if written.openapi.is_absent() {
                self.backend(label, &written.target, Serves::Tools, snapshot);
            }
            return None;
        };
        let target = &written.target;
        let others = [
            ("url", !target.url.is_absent()),
            ("prompts", !written.prompts.is_absent()),
            ("resources", !written.resources.is_absent()),
        ];
        let said = others.iter().filter(|(_, is_said)| *is_said);
        let said: Vec<&str> = said.map(|(member, _)| *member).collect();
        if !said.is_empty() {
            let says = format!("is an HTTP API, and says {}", said.join(", "));
            let hint = "write where it is as base; it has tools alone";
            self.fault(&name.place, says, hint);
        }
        let methods = written.methods.items().iter();
        let methods = Methods(methods.map(|at| at.value.0).collect());
        match &at.value {
            DescriptionAt::File(file) => {
                let file = At {
                    value: file.clone(),
                    place: at.place.clone(),
                    shown: at.shown.clone(),
                };
                self.of_file(label, (&file, methods), written, snapshot)
            }
            DescriptionAt::Url(url, origin) => {
                let remote = Remote::new(url.clone(), methods, !written.base.is_absent());
                let remote = Arc::new(remote);
                let base = match written.base.get() {
                    Some(base) => target_at(base, base.value.clone()),
                    None => target_at(at, origin.clone()),
                };
                self.not_on_the_link(&target_at(at, origin.clone()));
                self.backend(label, &written.target, Serves::ToolsAt(&base), snapshot);
                let ca = target.ca.get().and_then(|ca| self.certificate(ca));
                self.made.descriptions.push(ToolDescription {
                    server: name.value.0.clone(),
                    remote: Arc::clone(&remote),
                    ca_pem: ca.map(|(_, pem)| pem),
                });
                Some(remote as _)
            }
        }
    }

    /// One whose description is a file.
    fn of_file(
        &mut self,
        label: &At<Name>,
        (file, methods): (&At<File>, Methods),
        written: &McpServer,
        snapshot: &mut Snapshot,
    ) -> Option<Arc<dyn Described>> {
        let (_, bytes) = self.read_up_to(file, "", DESCRIPTION_BYTES_MAX)?;
        let read = Description::read(&bytes).and_then(|description| {
            let server = match written.base.is_absent() {
                true => Some(description.server()?),
                false => None,
            };
            Ok((Api::of(&description, &methods, "")?, server))
        });
        let ((api, left), server) = match read {
            Ok(read) => read,
            Err(fault) => {
                let says = format!("{}: {fault}", file.shown);
                self.fault(&file.place, says, "");
                return None;
            }
        };
        self.left_out(&file.place, &left);
        if api.is_empty() {
            let says = format!("{} describes no operation that can be a tool", file.shown);
            self.fault(
                &file.place,
                says,
                "leave the server out, or name more methods",
            );
        }
        let base = match (written.base.get(), server) {
            (Some(base), _) => target_at(base, base.value.clone()),
            (None, Some(Server::Whole(url))) => match Target::read(url.trim_end_matches('/')) {
                Ok(target) => target_at(file, target),
                Err(problem) => {
                    let says = format!("its server {url} {}", problem.is);
                    self.fault(&file.place, says, "write its address as base");
                    return None;
                }
            },
            (None, Some(Server::Relative(_))) => {
                let says = format!("{} does not say where its API is", file.shown);
                self.fault(&file.place, says, "write base: https://…");
                return None;
            }
            // It has a fault of its own.
            (None, None) => return None,
        };
        self.backend(label, &written.target, Serves::ToolsAt(&base), snapshot);
        Some(Arc::new(api))
    }

    /// Names the operations that are no tools.
    fn left_out(&mut self, place: &Place, left: &[Left]) {
        for Left { operation, why } in left.iter().take(NAMED_MAX) {
            self.warn(place, format!("{operation} is no tool: {why}"), "");
        }
        if let Some(further) = left.len().checked_sub(NAMED_MAX).filter(|of| *of > 0) {
            let says = format!("{further} further operations cannot be served as tools");
            self.warn(place, says, "");
        }
    }
}

/// An address where another value stands.
fn target_at<T>(at: &At<T>, value: Target) -> At<Target> {
    At {
        value,
        place: at.place.clone(),
        shown: at.shown.clone(),
    }
}
