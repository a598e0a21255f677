//! The items that a kept response was made from, as the Responses API lists them page by page.
//!
//! Invariant: an item stands in a page as its client or its backend wrote it, but for what a list's items always have: an id, a type, and
//! a content that is a list.
//! Not here: which items those are (`policy`), items that go on (`going_on`).

use std::ops::Range;

use super::going_on::put_items;
use crate::head::percent_decoded;
use crate::json::{self, Interest, Interests, Kind, Member, Reader, Repeat, Want};

/// Items in a page, where nobody says how many, and at most.
const PAGE: usize = 20;
const PAGE_MAX: usize = 100;
const ID_BYTES: usize = 512;

static OF_AN_ITEM: Interests = Interests::new(&[
    Interest::new("id", Want::Raw(ID_BYTES), Repeat::LastWins),
    Interest::new("type", Want::Place, Repeat::LastWins),
    Interest::new("content", Want::Place, Repeat::LastWins),
    Interest::new("role", Want::Raw(16), Repeat::LastWins),
]);

/// Which page is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPage {
    ascends: bool,
    limit: usize,
    after: Option<Vec<u8>>,
}

impl ItemPage {
    /// By the query of its request: `order`, `limit` and `after`. `None` where one of them is none that can be.
    #[must_use]
    pub fn of(query: &str) -> Option<Self> {
        let mut page = Self {
            ascends: false,
            limit: PAGE,
            after: None,
        };
        for member in query.split('&') {
            let (name, value) = member.split_once('=').unwrap_or((member, ""));
            match name {
                "order" => {
                    page.ascends = match value {
                        "asc" => true,
                        "desc" => false,
                        _ => return None,
                    }
                }
                "limit" => {
                    let limit = value.parse().ok();
                    page.limit = limit.filter(|limit| (1..=PAGE_MAX).contains(limit))?;
                }
                "after" => page.after = Some(percent_decoded(value)),
                _ => {}
            }
        }
        Some(page)
    }

    /// The page of these items, in their order: lists, or texts of the user's. Those without an id have one of `response`'s. `None` where
    /// the item after which it begins is none of them.
    #[must_use]
    pub fn listed(&self, response: &str, items: &[&[u8]]) -> Option<Vec<u8>> {
        let mut all = vec![b'['];
        for items in items {
            put_items(items, &mut all);
        }
        all.push(b']');
        let mut found: Vec<(usize, &[u8])> = elements(&all).into_iter().enumerate().collect();
        if !self.ascends {
            found.reverse();
        }
        // Only what is in the page is gone through, and what stands before it where that has to be found.
        let named = |(nth, item): &(usize, &[u8])| Named::of(response, *nth, item);
        let from = match &self.after {
            None => 0,
            Some(after) => 1 + found.iter().position(|item| *named(item).id == **after)?,
        };
        let rest = found.get(from..).unwrap_or_default();
        let page = rest.get(..self.limit).unwrap_or(rest);
        let page: Vec<Named> = page.iter().map(named).collect();
        let quoted = |item: Option<&Named>| match item {
            Some(item) => {
                serde_json::Value::from(String::from_utf8_lossy(&item.id).as_ref()).to_string()
            }
            None => "null".to_owned(),
        };
        let mut out = b"{\"object\":\"list\",\"data\":[".to_vec();
        for (nth, item) in page.iter().enumerate() {
            if nth > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&item.whole);
        }
        let end = format!(
            "],\"first_id\":{},\"last_id\":{},\"has_more\":{}}}",
            quoted(page.first()),
            quoted(page.last()),
            rest.len() > page.len()
        );
        out.extend_from_slice(end.as_bytes());
        Some(out)
    }
}

/// An item with its id.
struct Named {
    id: Vec<u8>,
    whole: Vec<u8>,
}

impl Named {
    fn of(response: &str, nth: usize, item: &[u8]) -> Self {
        let own = || {
            let of = response.rsplit('_').next().unwrap_or_default();
            format!("item_{of}_{nth}").into_bytes()
        };
        let as_it_is = || Self {
            id: own(),
            whole: item.to_vec(),
        };
        let mut scanner = json::Scanner::new(&OF_AN_ITEM);
        let found = match scanner.push(item) {
            Ok(()) => scanner.finish(),
            Err(_) => return as_it_is(),
        };
        let Ok(found) = found else {
            return as_it_is();
        };
        let Some(open) = found.open else {
            return as_it_is();
        };
        let said = |at| found.member(at).filter(|m: &&Member| m.kind != Kind::Null);
        let id = said(0).and_then(|id| found.text(id));
        let id = id.map(|id| id.as_bytes().to_vec());
        let mut before = String::new();
        let has_id = id.is_some();
        let id = id.unwrap_or_else(own);
        if !has_id {
            before = format!("\"id\":\"{}\",", String::from_utf8_lossy(&id));
        }
        if said(1).is_none() {
            before.push_str("\"type\":\"message\",");
        }
        let mut edits: Vec<(Range<usize>, Vec<u8>)> = vec![(open..open, before.into_bytes())];
        if let Some(content) = said(2).filter(|content| content.kind == Kind::String) {
            let at = content.value.clone();
            let is_assistants = said(3).is_some_and(|role| found.raw(role) == b"\"assistant\"");
            let kind = match is_assistants {
                true => &b"{\"type\":\"output_text\",\"annotations\":[],\"text\":"[..],
                false => b"{\"type\":\"input_text\",\"text\":",
            };
            let text = item.get(at.clone()).unwrap_or_default();
            edits.push((at, [b"[", kind, text, b"}]"].concat()));
        }
        let (mut whole, mut done) = (Vec::with_capacity(item.len() + 64), 0);
        for (at, put) in edits {
            whole.extend_from_slice(item.get(done..at.start).unwrap_or_default());
            whole.extend_from_slice(&put);
            done = at.end;
        }
        whole.extend_from_slice(item.get(done..).unwrap_or_default());
        Self { id, whole }
    }
}

/// The values of a list.
fn elements(list: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = list.strip_prefix(b"[").unwrap_or_default();
    loop {
        let mut reader = Reader::new(rest);
        let Some((_, item)) = reader.value() else {
            return found;
        };
        found.push(item);
        let after = rest.get(reader.place()..).unwrap_or_default();
        match after.trim_ascii_start().strip_prefix(b",") {
            Some(next) => rest = next,
            None => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Pages of the items of one response.

    use super::ItemPage;

    fn page(query: &str) -> Option<String> {
        let items: [&[u8]; 4] = [
            br#""Hello""#,
            br#"[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]"#,
            b"[]",
            br#"[ {"role":"user","content":"b"} , {"type":"function_call_output","call_id":"c","output":"21"} ]"#,
        ];
        let listed = ItemPage::of(query)?.listed("resp_tg_00ff", &items)?;
        Some(String::from_utf8(listed).expect("text"))
    }

    #[test]
    fn items_are_listed_with_ids_in_either_order_page_by_page() {
        assert_eq!(
            page("order=asc&limit=2&include[]=x").expect("a page"),
            r#"{"object":"list","data":[{"id":"item_00ff_0","type":"message","role":"user","content":[{"type":"input_text","text":"Hello"}]},{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],"first_id":"item_00ff_0","last_id":"msg_1","has_more":true}"#
        );
        assert_eq!(
            page("order=asc&after=msg%5F1").expect("a page"),
            r#"{"object":"list","data":[{"id":"item_00ff_2","type":"message","role":"user","content":[{"type":"input_text","text":"b"}]},{"id":"item_00ff_3","type":"function_call_output","call_id":"c","output":"21"}],"first_id":"item_00ff_2","last_id":"item_00ff_3","has_more":false}"#
        );
        let newest = page("limit=1").expect("a page");
        assert!(newest.contains(r#""first_id":"item_00ff_3""#), "{newest}");
        assert!(newest.ends_with(r#""has_more":true}"#), "{newest}");
        let past = page("after=item_00ff_0").expect("a page");
        assert!(past.contains(r#""data":[],"first_id":null"#), "{past}");
    }

    #[test]
    fn a_page_that_cannot_be_is_none() {
        for query in [
            "limit=0",
            "limit=101",
            "limit=x",
            "order=up",
            "after=nobody",
        ] {
            assert_eq!(page(query), None, "{query}");
        }
    }
}
