//! Messages that were counted before, found by their JSON: what is known is not read again.
//!
//! Without a template a message counts the same wherever it stands, and so does a tool.
//! Invariant: a count from here is the one that the whole body, read into a tree, would have. A message is kept once it was
//! read whole and counted, under a hash of its bytes and its kind, so one that is known is JSON, and a message. All else of
//! the body is checked as for a tree. Whatever is out of the ordinary (a member that stands twice, another API, a fault of any
//! kind) is left to the tree, which knows what to say.
//! Not here: renderings in which a message depends on its neighbours (`prompts`).

mod body;
mod checked;

use std::sync::Arc;

use body::Body;

use crate::dialect::{self, Counted, Reader, chat, messages};
use crate::features;
use crate::memo::{Memo, Shaped};
use crate::overhead;
use crate::shape::{Feature, Shape};
use crate::vocabulary::Vocabulary;
use crate::words::Words;
use prompts::conversation::{Tool, Turn};
use prompts::tree::{Member, Tree};
use prompts::{Uncountable, wrong};

/// How deep a member of the body may be: the parser takes 127 levels, and the body is one.
const MEMBER_LEVELS: usize = 126;
/// How deep a message may be: the list is another.
const LEVELS: usize = MEMBER_LEVELS - 1;

/// What is remembered of one vocabulary.
pub(crate) struct KnownMessages {
    memo: Arc<Memo>,
    chat: Kinds,
    messages: Kinds,
}

/// The numbers of what has counts of its own.
struct Kinds {
    message: u64,
    tool: u64,
}

impl KnownMessages {
    pub(crate) fn new(memo: Arc<Memo>) -> Self {
        let kinds = || Kinds {
            message: memo.number(),
            tool: memo.number(),
        };
        Self {
            chat: kinds(),
            messages: kinds(),
            memo,
        }
    }

    /// The tokens of a prompt, and its shape without its API; none where the tree is to say.
    pub(crate) fn count(
        &self,
        operation: Counted,
        body: &[u8],
        vocabulary: &Vocabulary,
        words: &Words,
    ) -> Option<Shaped> {
        let kinds = match operation {
            Counted::Chat => &self.chat,
            Counted::Messages => &self.messages,
            Counted::Completions | Counted::Responses | Counted::Embeddings => {
                return None;
            }
        };
        let mut body = Body::cut(body)?;
        let said = match std::mem::take(&mut body.arguments) {
            none if none.is_empty() => Shape::NONE,
            said => of_arguments(operation, said)?,
        };
        let mut counted = self.count_body(&body, operation, kinds, vocabulary, words);
        if let Ok(counted) = &mut counted {
            counted.shape = counted.shape.and(said);
        }
        counted.ok()
    }

    fn count_body(
        &self,
        body: &Body<'_>,
        operation: Counted,
        kinds: &Kinds,
        vocabulary: &Vocabulary,
        words: &Words,
    ) -> Result<Shaped, Uncountable> {
        let is_chat = operation == Counted::Chat;
        if is_chat && body.has_functions {
            return Err(wrong("functions", "given as `tools`"));
        }
        let (mut tokens, mut shape) = (overhead::PRIMING, Shape::NONE);
        if !is_chat && let Some(turn) = messages::system_prompt(body.system.as_ref())? {
            tokens += overhead::count_turn(&turn, vocabulary, words)?;
            shape = features::of_turn(&turn);
        }
        for message in &body.messages {
            let known = self.memo.remembered(kinds.message, message, || {
                let message = read(message)?;
                if is_chat {
                    let turn = chat::turn(&message, Reader::Overhead)?;
                    return count_turns(&[turn], vocabulary, words);
                }
                let mut turns = Vec::new();
                messages::turns(&message, &mut turns)?;
                count_turns(&turns, vocabulary, words)
            })?;
            // Each turn before it has counted for something.
            let is_first = tokens == overhead::PRIMING;
            tokens += known.tokens;
            shape = shape.and(features::placed(known.shape, is_first));
        }
        tokens += overhead::for_tools(body.tools.len());
        for tool in &body.tools {
            let known = self.memo.remembered(kinds.tool, tool, || {
                let tool = read(tool)?;
                let tool = if is_chat {
                    Tool::of_chat(&tool)?
                } else {
                    messages::tool(&tool)?
                };
                Ok(Shaped {
                    tokens: overhead::count_tool(&tool, vocabulary)?,
                    shape: features::of_tool(&tool),
                })
            })?;
            tokens += known.tokens;
            shape = shape.and(known.shape);
        }
        let is_given = body.has_tools && !is_chat;
        Ok(Shaped {
            tokens,
            shape: shape.with_if(is_given, Feature::Tools),
        })
    }
}

/// The shape that is said by what is neither message nor tool; none where the tree is to say.
fn of_arguments(operation: Counted, mut said: Vec<Member<'_>>) -> Option<Shape> {
    said.push(("messages".into(), Tree::List(Vec::new())));
    let body = Tree::Map(said);
    // Which tools then count is the counter's to say.
    if dialect::forbids_tools(&body) {
        return None;
    }
    let conversations = dialect::read(operation, &body, Reader::Overhead).ok()?;
    let shapes = conversations.iter();
    let shapes = shapes.map(|one| features::of_conversation(operation, one));
    Some(shapes.fold(Shape::NONE, Shape::and))
}

fn count_turns(
    turns: &[Turn<'_>],
    vocabulary: &Vocabulary,
    words: &Words,
) -> Result<Shaped, Uncountable> {
    let (mut tokens, mut shape) = (0, Shape::NONE);
    for turn in turns {
        tokens += overhead::count_turn(turn, vocabulary, words)?;
        shape = shape.and(features::of_turn(turn));
    }
    Ok(Shaped { tokens, shape })
}

fn read(json: &str) -> Result<Tree<'_>, Uncountable> {
    Tree::read(json, LEVELS).map_err(|error| Uncountable::NotJson(error.to_string()))
}

#[cfg(test)]
mod tests;
