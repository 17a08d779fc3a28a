//! URI templates as RFC 6570 has them, all values being strings. By hand, since they come from servers, and
//! iri-string 0.7 panics at `{x:99999}`, at prefixes, and at values that aren't ASCII.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// A template that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template<'t>(Vec<Piece<'t>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece<'t> {
    Literal(&'t str),
    Expression { operator: Option<char>, variables: Vec<Variable<'t>> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable<'t> {
    name: &'t str,
    /// Characters of the value.
    most: usize,
}

const OPERATORS: [char; 7] = ['+', '#', '.', '/', ';', '?', '&'];
/// Longest prefix (section 2.4.1).
const MAX_PREFIX: usize = 9_999;

impl<'t> Template<'t> {
    /// Reads a template (section 2).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &'t str) -> Result<Self, String> {
        let (mut pieces, mut rest) = (vec![], text);
        while !rest.is_empty() {
            let (literal, after) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
            if !is_literal(literal) {
                return Err(format!("{literal:?} has a character that must be encoded"));
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal));
            }
            rest = match after.strip_prefix('{').map(|inside| inside.split_once('}')) {
                Some(Some((inside, after))) => {
                    pieces.push(expression(inside)?);
                    after
                }
                Some(None) => return Err(format!("{after:?} is not closed")),
                None => after,
            };
        }
        Ok(Self(pieces))
    }

    /// The variables in their order, as often as they stand in it.
    pub fn variables(&self) -> impl Iterator<Item = &'t str> {
        self.0
            .iter()
            .flat_map(|piece| match piece {
                Piece::Literal(_) => &[],
                Piece::Expression { variables, .. } => variables.as_slice(),
            })
            .map(|variable| variable.name)
    }

    /// Fills it in (section 3.2.1, with the table of appendix A). A variable without value is left out.
    pub fn expand(&self, values: &BTreeMap<String, String>) -> String {
        let mut uri = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => push_reserved(&mut uri, literal),
                Piece::Expression { operator, variables } => {
                    push_values(&mut uri, *operator, variables, values);
                }
            }
        }
        uri
    }
}

fn expression(inside: &str) -> Result<Piece<'_>, String> {
    let operator = inside.chars().next().filter(|first| OPERATORS.contains(first));
    let list = operator.map_or(inside, |operator| &inside[operator.len_utf8()..]);
    let variables = list.split(',').map(|variable| {
        let wrong = || format!("{{{inside}}} is no expression");
        // A string explodes into itself.
        let variable = variable.strip_suffix('*').unwrap_or(variable);
        let (name, most) = match variable.split_once(':') {
            None => (variable, usize::MAX),
            Some((name, most)) => {
                let digits =
                    most.bytes().all(|byte| byte.is_ascii_digit()) && !most.starts_with('0');
                let most = most.parse().ok().filter(|most| digits && *most <= MAX_PREFIX);
                (name, most.ok_or_else(wrong)?)
            }
        };
        if is_name(name) { Ok(Variable { name, most }) } else { Err(wrong()) }
    });
    Ok(Piece::Expression { operator, variables: variables.collect::<Result<_, _>>()? })
}

fn is_name(name: &str) -> bool {
    are_encoded(name)
        && name.split('.').all(|part| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '%'))
        })
}

fn is_literal(literal: &str) -> bool {
    let is_bad = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '}')
    };
    !literal.contains(is_bad) && are_encoded(literal)
}

/// Whether two hexadecimal digits follow each percent sign.
fn are_encoded(text: &str) -> bool {
    text.split('%').skip(1).all(begins_encoded)
}

/// Whether what stands behind a percent sign makes an encoded byte with it.
fn begins_encoded(after: &str) -> bool {
    matches!(after.as_bytes(), [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

fn push_values(
    uri: &mut String,
    operator: Option<char>,
    variables: &[Variable<'_>],
    values: &BTreeMap<String, String>,
) {
    let (first, separator, is_named, if_empty, keeps_reserved) = match operator {
        Some('+') => ("", ",", false, "", true),
        Some('#') => ("#", ",", false, "", true),
        Some('.') => (".", ".", false, "", false),
        Some('/') => ("/", "/", false, "", false),
        Some(';') => (";", ";", true, "", false),
        Some('?') => ("?", "&", true, "=", false),
        Some('&') => ("&", "&", true, "=", false),
        _ => ("", ",", false, "", false),
    };
    let mut lead = first;
    for Variable { name, most } in variables {
        let Some(value) = values.get(*name) else { continue };
        let end = value.char_indices().nth(*most).map_or(value.len(), |(at, _)| at);
        let value = &value[..end];
        uri.push_str(lead);
        lead = separator;
        if is_named {
            uri.push_str(name);
            uri.push_str(if value.is_empty() { if_empty } else { "=" });
        }
        match keeps_reserved {
            true => push_reserved(uri, value),
            false => uri.extend(utf8_percent_encode(value, &ALL_BUT_UNRESERVED)),
        }
    }
}

const ALL_BUT_UNRESERVED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const ALL_BUT_RESERVED: AsciiSet = ALL_BUT_UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'#')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Reserved characters, and what is percent-encoded already, stay as they are.
fn push_reserved(uri: &mut String, text: &str) {
    for (at, piece) in text.split('%').enumerate() {
        if at > 0 {
            uri.push_str(if begins_encoded(piece) { "%" } else { "%25" });
        }
        uri.extend(utf8_percent_encode(piece, &ALL_BUT_RESERVED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(template: &str, values: &[(&str, &str)]) -> Result<String, String> {
        let values = values.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Ok(Template::parse(template)?.expand(&values.collect()))
    }

    #[test]
    fn the_examples_of_the_standard_come_out() {
        let values = [
            ("var", "value"),
            ("hello", "Hello World!"),
            ("half", "50%"),
            ("base", "http://example.com/home/"),
            ("path", "/foo/bar"),
            ("empty", ""),
            ("v", "6"),
            ("x", "1024"),
            ("y", "768"),
        ];
        for (template, expected) in [
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("?{x,undef}", "?1024"),
            ("{var:3}{var:30}", "valvalue"),
            ("{+hello}", "Hello%20World!"),
            ("{+half}", "50%25"),
            ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
            ("{+base}index", "http://example.com/home/index"),
            ("{+path:6}/here", "/foo/b/here"),
            ("X{#var}{#hello}", "X#value#Hello%20World!"),
            ("foo{#empty}{#undef}", "foo#"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("X{.var}{.empty}{.undef}", "X.value."),
            ("www{.x,y}", "www.1024.768"),
            ("{/var,empty}{/undef}", "/value/"),
            ("{/var:1,var}", "/v/value"),
            ("{;x,y,empty}{;v,empty,undef}", ";x=1024;y=768;empty;v=6;empty"),
            ("{;hello:5}", ";hello=Hello"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("?fixed=yes{&x,empty*}", "?fixed=yes&x=1024&empty="),
        ] {
            assert_eq!(expand(template, &values).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn values_of_any_script_are_encoded_cut_and_kept() {
        for (template, value, expected) in [
            ("w://{+p}", "退款/a b.md", "w://%E9%80%80%E6%AC%BE/a%20b.md"),
            ("w://{p:1}{#p:2}", "возврат", "w://%D0%B2#%D0%B2%D0%BE"),
            ("w://{+p}", "%退%E9%80%80%4", "w://%25%E9%80%80%E9%80%80%254"),
            ("w://退/{p}", "", "w://%E9%80%80/"),
        ] {
            assert_eq!(expand(template, &[("p", value)]).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused_in_words() {
        for template in [
            "a://{b",
            "a://b}",
            "a://{}",
            "a://{b:0}",
            "a://{b:99999}",
            "a://{b:-1}",
            "a://{=b}",
            "a://{b c}",
            "a://{b,}",
            "a://{.}",
            "a b",
            "a://%zz",
            "a://{%zz}",
            "a://{b*:3}",
            "a://{{b}}",
        ] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }
}
