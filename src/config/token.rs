//! Tokens of scopes: what a client is given, and the hash of it that a config holds.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::sha256_hex;

/// A new token, which nobody can show again.
pub struct Token {
    pub secret: String,
    /// Lower-case hex.
    pub sha256: String,
}

/// A token of 256 random bits.
///
/// # Errors
/// The system has no random bytes.
pub fn new() -> Result<Token, String> {
    let mut random = [0; 32];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| format!("no random bytes can be had: {error}"))?;
    let secret = format!("rdx_{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    Ok(Token { sha256: sha256_hex(&secret), secret })
}

impl Token {
    /// What belongs in the config, as TOML.
    pub fn config(&self, scope: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name = match scope.chars().all(plain) && !scope.is_empty() {
            true => scope.to_owned(),
            false => toml::Value::from(scope).to_string(),
        };
        format!("[scopes.{name}]\ntoken_sha256 = \"{}\"\n", self.sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_for_the_config_names_the_scope_whatever_it_is_called() {
        let token = new().unwrap();
        assert_eq!(token.sha256, sha256_hex(&token.secret));
        for scope in ["support-bot", "客服 \"bot\"", ""] {
            let read: toml::Table = token.config(scope).parse().unwrap();
            let hash = read["scopes"][scope]["token_sha256"].as_str();
            assert_eq!(hash, Some(token.sha256.as_str()), "{scope}");
        }
    }
}
