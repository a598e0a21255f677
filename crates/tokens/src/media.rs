//! Pictures in a body: counted where the model's rule is public and the picture's size stands in its header.
//!
//! Invariant: a picture is counted by its model's rule and marked ([`Doubt::Media`](crate::Doubt::Media)), or stays in
//! the body, where reading it says that it cannot be counted; it is never counted as nothing.
//! Not here: sound and files, which are not counted; pictures behind an address, of which nothing is known.

mod header;
mod openai;

use prompts::tree::Tree;

/// Most pictures that are counted in one body.
const MAX_PICTURES: usize = 1024;

/// Takes the pictures out of a body that can be counted, and gives their tokens; none where there are none.
pub(crate) fn take(body: &mut Tree<'_>) -> Option<u64> {
    let model = body.get_text("model").unwrap_or_default();
    let prices = openai::prices(model);
    let (mut taken, mut tokens) = (0, 0_u64);
    let Tree::Map(members) = body else {
        return None;
    };
    let lists = members
        .iter_mut()
        .filter(|(name, _)| matches!(&**name, "messages" | "input"));
    for (_, list) in lists {
        let Tree::List(messages) = list else {
            continue;
        };
        for message in messages {
            let Some(Tree::List(parts)) = content(message) else {
                continue;
            };
            parts.retain(|part| {
                let counted = Picture::of(part)
                    .filter(|_| taken < MAX_PICTURES)
                    .and_then(|picture| count(&picture, prices?));
                if let Some(counted) = counted {
                    taken += 1;
                    tokens = tokens.saturating_add(counted);
                }
                counted.is_none()
            });
        }
    }
    (taken > 0).then_some(tokens)
}

/// By tiles, as OpenAI documents it for the model that the body names.
fn count(picture: &Picture<'_>, prices: openai::Prices) -> Option<u64> {
    if picture.is_coarse {
        return Some(prices.of_coarse());
    }
    Some(prices.of(header::size(picture.data?)?))
}

fn content<'a, 't>(message: &'a mut Tree<'t>) -> Option<&'a mut Tree<'t>> {
    let Tree::Map(members) = message else {
        return None;
    };
    let content = members.iter_mut().find(|(name, _)| name == "content");
    content.map(|(_, content)| content)
}

/// A part that is a picture, in one of three dialects.
struct Picture<'t> {
    /// Base64, if it is in the body.
    data: Option<&'t str>,
    /// Asked for at the lowest resolution.
    is_coarse: bool,
}

impl<'t> Picture<'t> {
    fn of(part: &'t Tree<'_>) -> Option<Self> {
        let (url, detail) = match part.get_text("type")? {
            "image_url" => {
                let image = part.get("image_url")?;
                (
                    image.get_text("url").or_else(|| image.text())?,
                    image.get_text("detail"),
                )
            }
            "input_image" => (part.get_text("image_url")?, part.get_text("detail")),
            "image" => {
                let source = part.get("source")?;
                let data = source
                    .get_text("data")
                    .filter(|_| source.get_text("type") == Some("base64"));
                return Some(Self {
                    data,
                    is_coarse: false,
                });
            }
            _ => return None,
        };
        let data = url
            .strip_prefix("data:")
            .and_then(|url| url.split_once(";base64,"));
        Some(Self {
            data: data.map(|(_, data)| data),
            is_coarse: detail == Some("low"),
        })
    }
}

#[cfg(test)]
mod tests;
