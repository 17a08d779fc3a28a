//! MIME types by a file's name.
//!
//! Our own table, because the general ones are made for web servers: to them `.ts` is a video, `.rs` and
//! `.toml` are unknown, and a `Makefile` has no type.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What is known of no name, by what the content looks like.
pub const PLAIN: &str = "text/plain";
pub const BINARY: &str = "application/octet-stream";

/// Suffixes, lower case, by type. Types without a registration have the name that editors and
/// highlighters use.
const BY_SUFFIX: &[(&str, &str)] = &[
    (
        "text/plain",
        "txt text rst org adoc asciidoc tex log out lst conf cfg cnf ini properties env nfo srt \
      vtt po pot diff patch lock",
    ),
    ("text/markdown", "md markdown mdown mkd mdx rmd qmd"),
    ("text/html", "html htm xhtml shtml"),
    ("text/css", "css scss sass less"),
    ("text/csv", "csv"),
    ("text/tab-separated-values", "tsv tab"),
    ("text/calendar", "ics"),
    ("text/vcard", "vcf"),
    ("text/javascript", "js mjs cjs jsx"),
    ("text/x-typescript", "ts mts cts tsx"),
    ("text/x-vue", "vue"),
    ("text/x-svelte", "svelte"),
    ("text/x-python", "py pyi pyw"),
    ("text/x-rust", "rs"),
    ("text/x-go", "go"),
    ("text/x-c", "c h"),
    ("text/x-c++", "cc cpp cxx hh hpp hxx ino"),
    ("text/x-csharp", "cs"),
    ("text/x-java", "java"),
    ("text/x-kotlin", "kt kts"),
    ("text/x-scala", "scala sc"),
    ("text/x-groovy", "groovy gradle"),
    ("text/x-swift", "swift"),
    ("text/x-objective-c", "m mm"),
    ("text/x-dart", "dart"),
    ("text/x-ruby", "rb rake gemspec"),
    ("text/x-php", "php phtml"),
    ("text/x-perl", "pl pm"),
    ("text/x-lua", "lua"),
    ("text/x-r", "r"),
    ("text/x-julia", "jl"),
    ("text/x-haskell", "hs"),
    ("text/x-elixir", "ex exs"),
    ("text/x-erlang", "erl hrl"),
    ("text/x-clojure", "clj cljs cljc edn"),
    ("text/x-ocaml", "ml mli"),
    ("text/x-fsharp", "fs fsx"),
    ("text/x-zig", "zig"),
    ("text/x-nix", "nix"),
    ("text/x-shellscript", "sh bash zsh fish ksh"),
    ("text/x-powershell", "ps1 psm1"),
    ("text/x-bat", "bat cmd"),
    ("text/x-sql", "sql"),
    ("text/x-protobuf", "proto"),
    ("text/x-graphql", "graphql gql"),
    ("text/x-terraform", "tf tfvars hcl"),
    ("text/x-asm", "s asm"),
    ("text/x-cmake", "cmake"),
    ("text/x-makefile", "mk mak"),
    ("text/x-dockerfile", "dockerfile"),
    ("application/json", "json json5 jsonc geojson webmanifest map"),
    ("application/jsonl", "jsonl ndjson"),
    ("application/x-ipynb+json", "ipynb"),
    ("application/yaml", "yaml yml"),
    ("application/toml", "toml"),
    ("application/xml", "xml xsd xsl xslt rss atom plist"),
    ("image/svg+xml", "svg"),
    ("application/pdf", "pdf"),
    ("application/rtf", "rtf"),
    ("application/epub+zip", "epub"),
    ("application/msword", "doc"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.ms-powerpoint", "ppt"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("application/vnd.oasis.opendocument.text", "odt"),
    ("application/vnd.oasis.opendocument.spreadsheet", "ods"),
    ("application/vnd.oasis.opendocument.presentation", "odp"),
    ("message/rfc822", "eml"),
    ("application/zip", "zip"),
    ("application/gzip", "gz tgz"),
    ("application/x-bzip2", "bz2"),
    ("application/x-xz", "xz"),
    ("application/zstd", "zst"),
    ("application/x-7z-compressed", "7z"),
    ("application/vnd.rar", "rar"),
    ("application/x-tar", "tar"),
    ("application/java-archive", "jar"),
    ("application/vnd.sqlite3", "sqlite sqlite3"),
    ("application/vnd.apache.parquet", "parquet"),
    ("application/wasm", "wasm"),
    ("image/png", "png"),
    ("image/jpeg", "jpg jpeg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/heic", "heic"),
    ("image/bmp", "bmp"),
    ("image/tiff", "tif tiff"),
    ("image/vnd.microsoft.icon", "ico"),
    ("audio/mpeg", "mp3"),
    ("audio/wav", "wav"),
    ("audio/ogg", "ogg oga opus"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("video/mp4", "mp4 m4v"),
    ("video/webm", "webm"),
    ("video/quicktime", "mov"),
    ("video/x-matroska", "mkv"),
    ("video/x-msvideo", "avi"),
    ("font/ttf", "ttf"),
    ("font/otf", "otf"),
    ("font/woff", "woff"),
    ("font/woff2", "woff2"),
];

/// Whole names, lower case, of files that have no suffix.
const BY_NAME: &[(&str, &str)] = &[
    ("text/x-makefile", "makefile gnumakefile justfile"),
    ("text/x-dockerfile", "dockerfile containerfile"),
    ("text/x-ruby", "gemfile rakefile vagrantfile"),
    ("text/x-groovy", "jenkinsfile"),
    (
        PLAIN,
        "readme license licence copying notice authors changelog changes contributing codeowners todo \
      version",
    ),
];

/// The type that a file's name tells.
pub fn of_name(path: &OsStr) -> Option<&'static str> {
    let name = path.as_bytes().rsplit(|b| *b == b'/').next()?;
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    let (table, key) = match name.rsplit_once('.') {
        Some((_, suffix)) => (BY_SUFFIX, suffix),
        None => (BY_NAME, name.as_str()),
    };
    table
        .iter()
        .find(|(_, keys)| keys.split_ascii_whitespace().any(|k| k == key))
        .map(|(mime, _)| *mime)
}

/// The type of a file that its name doesn't tell, by its first bytes.
pub fn of_head(head: &[u8]) -> &'static str {
    match infer::get(head) {
        Some(found) => found.mime_type(),
        None if looks_like_text(head) => PLAIN,
        None => BINARY,
    }
}

/// Whether content of this type is text, if it decodes as such.
pub fn is_textual(mime: &str) -> bool {
    mime.starts_with("text/")
        || mime.starts_with("message/")
        || mime.ends_with("+json")
        || mime.ends_with("+xml")
        || matches!(
            mime,
            "application/json"
                | "application/jsonl"
                | "application/yaml"
                | "application/toml"
                | "application/xml"
        )
}

/// UTF-8, up to a character that the end of `head` cuts, without a NUL.
fn looks_like_text(head: &[u8]) -> bool {
    let utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(e) => e.error_len().is_none(),
    };
    utf8 && !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_tell_types() {
        for (name, mime) in [
            ("refunds.md", Some("text/markdown")),
            ("a/b.c/Main.TS", Some("text/x-typescript")),
            ("退款.CSV", Some("text/csv")),
            ("src/lib.rs", Some("text/x-rust")),
            ("Makefile", Some("text/x-makefile")),
            ("deploy/Dockerfile", Some("text/x-dockerfile")),
            ("prod.dockerfile", Some("text/x-dockerfile")),
            ("LICENSE", Some("text/plain")),
            ("LICENSE.md", Some("text/markdown")),
            ("a.tar.gz", Some("application/gzip")),
            ("photo.JPEG", Some("image/jpeg")),
            ("md", None),
            ("name.", None),
            ("data.xyz", None),
            ("a.md/b", None),
        ] {
            assert_eq!(of_name(OsStr::new(name)), mime, "{name}");
        }
        assert_eq!(of_name(OsStr::from_bytes(b"\xff.md")), None);
    }

    #[test]
    fn first_bytes_tell_types() {
        for (head, mime) in [
            (&b"hello"[..], PLAIN),
            ("你好".as_bytes(), PLAIN),
            (&"你好".as_bytes()[..5], PLAIN),
            (b"", PLAIN),
            (b"a\0b", BINARY),
            (b"\xff\xfe\xfd", BINARY),
            (b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"%PDF-1.7", "application/pdf"),
        ] {
            assert_eq!(of_head(head), mime, "{head:?}");
        }
    }

    #[test]
    fn each_suffix_stands_once() {
        for table in [BY_SUFFIX, BY_NAME] {
            let mut seen = BTreeSet::new();
            for key in table.iter().flat_map(|(_, keys)| keys.split_ascii_whitespace()) {
                assert!(seen.insert(key), "{key} stands twice");
                assert_eq!(key, key.to_ascii_lowercase());
            }
        }
    }
}
