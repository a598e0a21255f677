//! Embeddings of conversations, as vLLM takes them: no tools, no effort, and no generation prompt unless asked for.
//!
//! Not here: embeddings of texts and token numbers (`prompt`).

use super::{Reader, chat};
use prompts::conversation::{Conversation, Turn};
use prompts::tree::Tree;
use prompts::{Uncountable, wrong};

/// Whether the body has messages: under their own name, or as `input`.
pub(crate) fn has_messages(body: &Tree<'_>) -> bool {
    let is_message = |item: &Tree<'_>| matches!(item, Tree::Map(_));
    let first = body
        .get("input")
        .and_then(Tree::list)
        .and_then(<[_]>::first);
    let is_conversation =
        |item: &Tree<'_>| item.list().and_then(<[_]>::first).is_some_and(is_message);
    body.get("messages").is_some() || first.is_some_and(|it| is_message(it) || is_conversation(it))
}

/// The conversations of a body: one, or a list of them.
pub(crate) fn read<'t>(
    body: &'t Tree<'t>,
    reader: Reader,
) -> Result<Vec<Conversation<'t>>, Uncountable> {
    let (messages, input) = (body.get("messages"), body.get("input"));
    if messages.is_some() && input.is_some() {
        return Err(wrong("messages", "given without `input`"));
    }
    let given = messages.or(input).and_then(Tree::list);
    let given = given.ok_or(wrong("messages", "a list"))?;
    if !given.is_empty() && given.iter().all(|item| item.list().is_some()) {
        let all = given.iter().filter_map(Tree::list);
        return all.map(|one| conversation(one, body, reader)).collect();
    }
    Ok(vec![conversation(given, body, reader)?])
}

fn conversation<'t>(
    messages: &'t [Tree<'t>],
    body: &'t Tree<'t>,
    reader: Reader,
) -> Result<Conversation<'t>, Uncountable> {
    chat::own_template_is_absent(body, reader)?;
    let said = |name| chat::said(body, name, false, reader);
    let prompt = Tree::Bool(said("add_generation_prompt")?);
    let mut conversation = Conversation {
        continues: said("continue_final_message")?,
        adds_special_tokens: said("add_special_tokens")?,
        own_arguments: chat::own_arguments(body, reader)?,
        said_arguments: vec![("add_generation_prompt", prompt)],
        ..Conversation::default()
    };
    for message in messages {
        let mut turn = chat::turn(message, reader)?;
        if let Turn::Assistant { reasoning, .. } = &mut turn
            && message.get("reasoning").is_none()
        {
            // Only chat completions know its older name, `reasoning_content`.
            *reasoning = None;
        }
        conversation.turns.push(turn);
    }
    Ok(conversation)
}
