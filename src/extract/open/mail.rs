//! Mail (RFC 5322, MIME) and mailboxes: subject, people, date, body, attachments.

use mail_parser::mailbox::mbox::MessageIterator;
use mail_parser::{Address, Message, MessageParser, MimeHeaders, PartType};

use super::{Draft, Task, archive};
use crate::extract::html;

/// Whether bytes begin with a header's field, which is what tells mail from a note about it.
pub fn has_headers(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let name = head.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
    (2..40).contains(&name) && head.get(name) == Some(&b':')
}

/// # Errors
/// It is no mail, or has no text.
pub fn message(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let mut draft = Draft::new(task.budget);
    draft.mime_type = Some("message/rfc822");
    let message = MessageParser::default().parse(bytes).ok_or("the mail is broken")?;
    add(&message, &mut draft, task);
    if draft.is_blank() { Err("the mail has no text".into()) } else { Ok(draft) }
}

/// # Errors
/// It is no mailbox, or has no text.
pub fn mailbox(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let mut draft = Draft::new(task.budget);
    draft.mime_type = Some("application/mbox");
    // A broken message costs itself; more than an archive may have are left out.
    for one in MessageIterator::new(bytes).take(task.limits.max_archive_members).flatten() {
        if let Some(message) = MessageParser::default().parse(one.contents()) {
            add(&message, &mut draft, task);
        }
        if draft.is_full() {
            break;
        }
    }
    // A mailbox is no one of its mails.
    draft.title = None;
    if draft.is_blank() { Err("the mailbox has no text".into()) } else { Ok(draft) }
}

fn add(message: &Message<'_>, draft: &mut Draft, task: &Task<'_>) {
    if let Some(subject) = message.subject() {
        draft.title(subject);
        draft.heading(1, subject);
    }
    let mut about = String::new();
    for (label, address) in [("From", message.from()), ("To", message.to()), ("Cc", message.cc())] {
        let people = address.map(people).unwrap_or_default();
        if !people.is_empty() {
            about += &format!("{label}: {people}\n");
        }
    }
    if let Some(date) = message.date() {
        about += &format!("Date: {}\n", date.to_rfc3339());
    }
    draft.paragraph(&about);
    for part in message.text_bodies() {
        match &part.body {
            PartType::Text(text) => draft.paragraph(text),
            PartType::Html(text) => {
                let html = html::convert(text);
                draft.append(&html.text, &html.outline.headings, 1);
            }
            _ => {}
        }
    }
    for attachment in message.attachments() {
        let name = attachment.attachment_name().unwrap_or("attachment");
        match &attachment.body {
            PartType::Message(inner) if task.depth == 0 => {
                draft.heading(2, inner.subject().unwrap_or(name));
                for part in inner.text_bodies() {
                    if let PartType::Text(text) = &part.body {
                        draft.paragraph(text);
                    }
                }
            }
            _ => archive::add(attachment.contents(), name, draft, task),
        }
        if draft.is_full() {
            break;
        }
    }
}

fn people(address: &Address<'_>) -> String {
    let one = |person: &mail_parser::Addr<'_>| match (&person.name, &person.address) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (Some(one), None) | (None, Some(one)) => one.to_string(),
        (None, None) => String::new(),
    };
    // A list of a hundred receivers says no more than its beginning.
    address.iter().take(20).map(one).filter(|one| !one.is_empty()).collect::<Vec<_>>().join(", ")
}
