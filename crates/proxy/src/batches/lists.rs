//! Lists of files and batches: the caller's own, from what is kept of them here.
//!
//! Invariant: the provider's list is of a whole account, and is never asked for.
//! Not here: where they are kept (`policy::batch_store::BatchStore`).

use policy::batch_store::{Page, Thing};
use policy::refusal::{BatchRefusal, Refusal, escape};
use wire::batch::Api;
use wire::head::percent_decoded;

use super::{Arrived, answer};
use crate::call::{Call, Stop};
use crate::client::Downstream;

/// How many are listed where nobody says how many, and at most.
const LIMIT: usize = 20;
const LIMIT_MAX: usize = 100;

pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let page = match page(of.head.query().unwrap_or_default()) {
        Ok(page) => page,
        Err(says) => return Err(call.refuse(Refusal::ItemsPage { says: says.into() })),
    };
    let store = call.store()?;
    let asked = store.page(of.owner.clone(), of.backend.clone(), of.kind(), page);
    let (things, has_more) = match asked.await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let what = of.kind().as_str();
            return Err(call.refuse(BatchRefusal::NotKept { what }));
        }
        Err(_away) => return Err(call.refuse(BatchRefusal::Unavailable)),
    };
    let listed = listed(of.api, &things, has_more);
    drop(things);
    answer::told(call, 200, &listed, client).await
}

fn listed(api: Api, things: &[Thing], has_more: bool) -> Vec<u8> {
    let mut out = match api {
        Api::OpenAi => b"{\"object\":\"list\",\"data\":[".to_vec(),
        Api::Anthropic => b"{\"data\":[".to_vec(),
    };
    for (nth, thing) in things.iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&thing.object);
    }
    let quoted = |thing: Option<&Thing>| match thing {
        Some(thing) => {
            let mut text = b"\"".to_vec();
            escape(&thing.id, &mut text);
            text.push(b'"');
            String::from_utf8_lossy(&text).into_owned()
        }
        None => "null".to_owned(),
    };
    let (first, last) = (quoted(things.first()), quoted(things.last()));
    let end = format!("],\"first_id\":{first},\"last_id\":{last},\"has_more\":{has_more}}}");
    out.extend_from_slice(end.as_bytes());
    out
}

/// Which page a query asks for; in words why there is none.
fn page(query: &str) -> Result<Page, &'static str> {
    let mut page = Page {
        limit: LIMIT,
        after: None,
        before: None,
        ascends: false,
    };
    for member in query
        .trim_start_matches('?')
        .split('&')
        .filter(|m| !m.is_empty())
    {
        let (name, value) = member.split_once('=').unwrap_or((member, ""));
        let id = || {
            let id = String::from_utf8(percent_decoded(value)).ok();
            let id = id.filter(|id| !id.is_empty() && id.len() <= 128);
            id.map(Box::from).ok_or("`after` names no file or batch")
        };
        match name {
            "limit" => {
                let limit: Option<usize> = value.parse().ok().filter(|limit| *limit > 0);
                let limit = limit.ok_or("`limit` is a number from 1 on")?;
                page.limit = limit.min(LIMIT_MAX);
            }
            "order" => {
                page.ascends = match value {
                    "asc" => true,
                    "desc" => false,
                    _ => return Err("`order` is asc or desc"),
                }
            }
            "after" | "after_id" => page.after = Some(id()?),
            "before_id" => page.before = Some(id()?),
            // By it Anthropic's SDK says which of its methods was called.
            "beta" => {}
            _ => {
                return Err(
                    "a list has `limit`, `order`, `after`, `after_id` and `before_id` here",
                );
            }
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    //! Queries of lists, and what they list.

    use super::page;

    #[test]
    fn a_page_is_asked_for_by_known_members_alone() {
        let found = page("?limit=500&after=file-1&order=asc").expect("a page");
        assert_eq!(
            (found.limit, found.after.as_deref(), found.ascends),
            (100, Some("file-1"), true)
        );
        assert_eq!(page("").expect("a page").limit, 20);
        for bad in [
            "limit=0",
            "limit=x",
            "order=up",
            "purpose=batch",
            "after=",
            "x=1",
        ] {
            assert!(page(bad).is_err(), "{bad}");
        }
    }
}
