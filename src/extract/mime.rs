//! The registry of MIME types: which are text, of which kind, and what the others are called.
//!
//! One table serves both ways in, by type and by URI suffix.

/// How the text of a content is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Markdown,
    ReStructuredText,
    AsciiDoc,
    Org,
    Html,
    Xml,
    Json,
    /// One JSON value a line.
    JsonLines,
    Yaml,
    Toml,
    /// INI and the like: keys at the left edge.
    Config,
    Csv,
    Log,
    /// Jupyter's: JSON of cells.
    Notebook,
    /// SRT and WebVTT.
    Subtitles,
    Code,
    /// No text, or none that is read yet.
    Binary,
}

/// A declared type, taken apart: `Text/Markdown; charset=UTF-8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MimeType {
    /// Lower case, without parameters; empty when nothing was declared.
    pub essence: String,
    pub charset: Option<String>,
    pub profile: Option<String>,
}

impl MimeType {
    /// Takes a type as servers write it: any case, stray spaces, quoted parameters (RFC 2045).
    pub fn parse(declared: &str) -> Self {
        let mut fields = declared.split(';');
        let essence = fields.next().unwrap_or_default().trim().to_ascii_lowercase();
        let mut mime = Self { essence, ..Self::default() };
        for field in fields {
            let Some((name, value)) = field.split_once('=') else { continue };
            let value = value.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
            match name.trim().to_ascii_lowercase().as_str() {
                "charset" => mime.charset = Some(value),
                "profile" => mime.profile = Some(value),
                _ => {}
            }
        }
        mime
    }
}

/// What is known of a type: `None` when it says nothing about the content.
pub fn kind_of_type(essence: &str) -> Option<Kind> {
    if let Some(row) = TYPES.iter().find(|row| row.0 == essence || row.3.contains(&essence)) {
        return Some(row.1);
    }
    let (top, sub) = essence.split_once('/')?;
    match top {
        "image" | "audio" | "video" | "font" | "model" => Some(match sub {
            _ if sub.ends_with("+xml") => Kind::Xml,
            _ if sub.ends_with("+json") => Kind::Json,
            _ => Kind::Binary,
        }),
        _ if sub.ends_with("+json") => Some(Kind::Json),
        _ if sub.ends_with("+xml") => Some(Kind::Xml),
        _ if sub.ends_with("+yaml") => Some(Kind::Yaml),
        _ if sub.ends_with("+zip") || sub.ends_with("+gzip") => Some(Kind::Binary),
        "text" if sub.starts_with("x-") => Some(Kind::Code),
        "text" => Some(Kind::Plain),
        _ if ["vnd.openxmlformats-", "vnd.ms-", "vnd.oasis.opendocument"]
            .iter()
            .any(|prefix| sub.starts_with(prefix)) =>
        {
            Some(Kind::Binary)
        }
        _ => None,
    }
}

/// Whether two names stand for one type, or the first says nothing.
pub fn is_same_type(declared: &str, found: &str) -> bool {
    let row = |essence: &str| TYPES.iter().find(|row| row.0 == essence || row.3.contains(&essence));
    declared == found
        || declared == "application/octet-stream"
        || row(declared).is_some_and(|row| row.0 == found || row.3.contains(&found))
        // A template or one with macros is what it is named after.
        || declared.starts_with("application/vnd.") && found.starts_with(declared)
}

/// The type and kind that a URI's suffix stands for. Query and fragment don't count.
pub fn by_suffix(uri: &str) -> Option<(&'static str, Kind)> {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit(['/', '\\', ':']).next().unwrap_or_default().to_ascii_lowercase();
    if let Some(row) = TYPES.iter().find(|row| row.4.contains(&name.as_str())) {
        return Some((row.0, row.1));
    }
    let (_, suffix) = name.rsplit_once('.')?;
    TYPES.iter().find(|row| row.2.contains(&suffix)).map(|row| (row.0, row.1))
}

/// Whether a type is known to hold no text that is read (images, archives, PDF, office).
pub fn is_binary_type(mime_type: &str) -> bool {
    kind_of_type(&MimeType::parse(mime_type).essence) == Some(Kind::Binary)
}

/// The best type for a file's or URI's name, `None` when the suffix is unknown.
pub fn type_of_name(name: &str) -> Option<&'static str> {
    by_suffix(name).map(|(essence, _)| essence)
}

/// Why a type without text isn't read, in words that tell a user what to expect.
pub fn why_no_text(essence: &str) -> String {
    let (top, _) = essence.split_once('/').unwrap_or((essence, ""));
    match essence {
        "application/postscript" => "PostScript is not read".into(),
        // What is one by its bytes has been opened.
        _ if OPENED.contains(&essence)
            || ["officedocument", "opendocument"].iter().any(|part| essence.contains(part)) =>
        {
            format!("the content isn't {essence}, and has no text")
        }
        _ if ARCHIVES.contains(&essence) => {
            format!("archives of this kind are not opened ({essence})")
        }
        _ if ["image", "audio", "video", "font", "model"].contains(&top) => {
            format!("{essence} has no text")
        }
        "application/octet-stream" | "" => "binary data has no text".into(),
        _ => format!("{essence} is binary and has no text"),
    }
}

/// Formats that are known by their bytes.
const OPENED: &[&str] = &[
    "application/pdf",
    "application/rtf",
    "application/epub+zip",
    "application/zip",
    "application/gzip",
    "application/x-tar",
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
];

const ARCHIVES: &[&str] = &[
    "application/x-7z-compressed",
    "application/x-bzip2",
    "application/x-xz",
    "application/zstd",
    "application/vnd.rar",
    "application/java-archive",
    "application/x-lz4",
    "application/x-lzip",
    "application/x-cpio",
    "application/vnd.debian.binary-package",
    "application/x-rpm",
];

/// Type, kind, suffixes, other names of the type, whole file names.
type Row =
    (&'static str, Kind, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

#[rustfmt::skip]
const TYPES: &[Row] = &[
    ("text/plain", Kind::Plain, &["txt", "text"], &[], &["readme", "license", "licence", "copying", "authors", "changelog", "notice"]),
    ("text/markdown", Kind::Markdown, &["md", "markdown", "mdown", "mkd", "mdx", "qmd", "rmd", "mdc"], &["text/x-markdown", "text/md", "text/x-gfm", "application/markdown"], &[]),
    ("text/x-rst", Kind::ReStructuredText, &["rst", "rest"], &["text/prs.fallenstein.rst", "text/rst"], &[]),
    ("text/asciidoc", Kind::AsciiDoc, &["adoc", "asciidoc"], &["text/x-asciidoc"], &[]),
    ("text/org", Kind::Org, &["org"], &["text/x-org"], &[]),
    ("text/html", Kind::Html, &["html", "htm", "xhtml", "xht"], &["application/xhtml+xml"], &[]),
    ("image/svg+xml", Kind::Xml, &["svg"], &[], &[]),
    ("application/xml", Kind::Xml, &["xml", "rss", "atom", "xsd", "xsl", "xslt", "wsdl", "plist", "kml", "gpx", "xliff", "xlf", "csproj", "vcxproj", "nuspec", "resx"], &["text/xml"], &[]),
    ("application/json", Kind::Json, &["json", "json5", "jsonc", "geojson", "webmanifest", "har"], &["text/json", "text/x-json", "application/x-json", "application/json5"], &[]),
    ("application/x-ipynb+json", Kind::Notebook, &["ipynb"], &["application/vnd.jupyter"], &[]),
    ("application/x-ndjson", Kind::JsonLines, &["jsonl", "ndjson"], &["application/jsonl", "application/x-jsonlines", "application/jsonlines", "application/ndjson", "application/json-seq", "text/jsonl"], &[]),
    ("application/yaml", Kind::Yaml, &["yaml", "yml"], &["text/yaml", "text/x-yaml", "application/x-yaml", "text/vnd.yaml"], &[]),
    ("application/toml", Kind::Toml, &["toml"], &["text/toml", "text/x-toml", "application/x-toml"], &["cargo.lock", "poetry.lock", "uv.lock"]),
    ("text/x-ini", Kind::Config, &["ini", "cfg", "conf", "properties", "env", "service"], &["text/x-properties", "text/x-java-properties"], &[".env", ".gitconfig", ".editorconfig"]),
    ("text/csv", Kind::Csv, &["csv"], &["application/csv", "text/x-csv", "text/comma-separated-values"], &[]),
    ("text/tab-separated-values", Kind::Csv, &["tsv", "tab"], &["text/tsv", "text/x-tsv"], &[]),
    ("text/x-log", Kind::Log, &["log"], &["text/log", "application/x-log"], &[]),
    ("text/x-rust", Kind::Code, &["rs"], &["text/rust"], &[]),
    ("text/x-python", Kind::Code, &["py", "pyi", "pyw"], &["text/x-script.python", "application/x-python", "application/x-python-code", "text/python"], &[]),
    ("text/javascript", Kind::Code, &["js", "mjs", "cjs", "jsx"], &["application/javascript", "application/x-javascript", "application/ecmascript", "text/ecmascript", "text/jsx"], &[]),
    ("text/x-typescript", Kind::Code, &["ts", "tsx", "mts", "cts"], &["application/typescript", "text/typescript", "application/x-typescript"], &[]),
    ("text/css", Kind::Code, &["css", "scss", "sass", "less"], &[], &[]),
    ("text/x-c", Kind::Code, &["c", "h"], &["text/x-csrc", "text/x-chdr"], &[]),
    ("text/x-c++", Kind::Code, &["cc", "cpp", "cxx", "hh", "hpp", "hxx", "ino"], &["text/x-c++src", "text/x-c++hdr"], &[]),
    ("text/x-csharp", Kind::Code, &["cs"], &[], &[]),
    ("text/x-java", Kind::Code, &["java"], &["text/x-java-source"], &[]),
    ("text/x-kotlin", Kind::Code, &["kt", "kts"], &[], &[]),
    ("text/x-scala", Kind::Code, &["scala", "sc"], &[], &[]),
    ("text/x-go", Kind::Code, &["go"], &[], &["go.mod"]),
    ("text/x-ruby", Kind::Code, &["rb", "rake", "gemspec"], &["application/x-ruby"], &["rakefile", "gemfile"]),
    ("text/x-php", Kind::Code, &["php"], &["application/x-httpd-php", "application/x-php"], &[]),
    ("text/x-perl", Kind::Code, &["pl", "pm"], &["application/x-perl"], &[]),
    ("text/x-lua", Kind::Code, &["lua"], &[], &[]),
    ("text/x-swift", Kind::Code, &["swift"], &[], &[]),
    ("text/x-objectivec", Kind::Code, &["m", "mm"], &[], &[]),
    ("text/x-haskell", Kind::Code, &["hs"], &[], &[]),
    ("text/x-elixir", Kind::Code, &["ex", "exs"], &[], &[]),
    ("text/x-erlang", Kind::Code, &["erl", "hrl"], &[], &[]),
    ("text/x-clojure", Kind::Code, &["clj", "cljs", "edn"], &[], &[]),
    ("text/x-ocaml", Kind::Code, &["ml", "mli"], &[], &[]),
    ("text/x-fsharp", Kind::Code, &["fs", "fsx"], &[], &[]),
    ("text/x-r", Kind::Code, &["r"], &[], &[]),
    ("text/x-julia", Kind::Code, &["jl"], &[], &[]),
    ("text/x-dart", Kind::Code, &["dart"], &[], &[]),
    ("text/x-zig", Kind::Code, &["zig"], &[], &[]),
    ("text/x-nix", Kind::Code, &["nix"], &[], &[]),
    ("text/x-sql", Kind::Code, &["sql"], &["application/sql", "application/x-sql"], &[]),
    ("text/x-shellscript", Kind::Code, &["sh", "bash", "zsh", "fish"], &["application/x-sh", "text/x-sh", "application/x-shellscript", "application/x-bash"], &[".bashrc", ".zshrc", ".profile"]),
    ("text/x-powershell", Kind::Code, &["ps1", "psm1"], &["application/x-powershell"], &[]),
    ("text/x-batch", Kind::Code, &["bat", "cmd"], &[], &[]),
    ("text/x-dockerfile", Kind::Code, &["dockerfile"], &[], &["dockerfile", "containerfile"]),
    ("text/x-makefile", Kind::Code, &["mk", "mak"], &[], &["makefile", "gnumakefile", "justfile"]),
    ("text/x-cmake", Kind::Code, &["cmake"], &[], &["cmakelists.txt"]),
    ("text/x-terraform", Kind::Code, &["tf", "tfvars", "hcl"], &[], &[]),
    ("text/x-protobuf", Kind::Code, &["proto"], &["application/x-protobuf-text"], &[]),
    ("application/graphql", Kind::Code, &["graphql", "gql"], &[], &[]),
    ("text/x-diff", Kind::Code, &["diff", "patch"], &["text/diff", "text/x-patch"], &[]),
    ("text/x-vue", Kind::Code, &["vue"], &["text/x-svelte"], &[]),
    ("text/x-svelte", Kind::Code, &["svelte"], &[], &[]),
    ("text/x-tex", Kind::Code, &["tex", "sty", "bib"], &["application/x-tex", "application/x-latex", "text/x-latex"], &[]),
    ("text/x-vim", Kind::Code, &["vim"], &[], &[]),
    ("text/vtt", Kind::Subtitles, &["vtt"], &[], &[]),
    ("application/x-subrip", Kind::Subtitles, &["srt"], &["text/srt", "text/x-subrip"], &[]),
    ("text/calendar", Kind::Plain, &["ics"], &[], &[]),
    ("text/vcard", Kind::Plain, &["vcf"], &["text/x-vcard"], &[]),
    ("message/rfc822", Kind::Plain, &["eml"], &[], &[]),
    ("application/mbox", Kind::Plain, &["mbox"], &[], &[]),
    ("application/pdf", Kind::Binary, &["pdf"], &["application/x-pdf"], &[]),
    ("application/rtf", Kind::Binary, &["rtf"], &["text/rtf"], &[]),
    ("application/msword", Kind::Binary, &["doc", "dot"], &[], &[]),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", Kind::Binary, &["docx"], &[], &[]),
    ("application/vnd.ms-excel", Kind::Binary, &["xls"], &[], &[]),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", Kind::Binary, &["xlsx", "xlsm"], &[], &[]),
    ("application/vnd.ms-powerpoint", Kind::Binary, &["ppt"], &[], &[]),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", Kind::Binary, &["pptx"], &[], &[]),
    ("application/vnd.oasis.opendocument.text", Kind::Binary, &["odt"], &[], &[]),
    ("application/vnd.oasis.opendocument.spreadsheet", Kind::Binary, &["ods"], &[], &[]),
    ("application/vnd.oasis.opendocument.presentation", Kind::Binary, &["odp"], &[], &[]),
    ("application/epub+zip", Kind::Binary, &["epub"], &[], &[]),
    ("application/postscript", Kind::Binary, &["ps", "eps"], &[], &[]),
    ("application/zip", Kind::Binary, &["zip"], &["application/x-zip-compressed", "application/x-zip"], &[]),
    ("application/gzip", Kind::Binary, &["gz", "tgz"], &["application/x-gzip"], &[]),
    ("application/x-tar", Kind::Binary, &["tar"], &[], &[]),
    ("application/x-7z-compressed", Kind::Binary, &["7z"], &[], &[]),
    ("application/x-bzip2", Kind::Binary, &["bz2"], &["application/x-bzip"], &[]),
    ("application/x-xz", Kind::Binary, &["xz"], &[], &[]),
    ("application/zstd", Kind::Binary, &["zst"], &["application/x-zstd"], &[]),
    ("application/vnd.rar", Kind::Binary, &["rar"], &["application/x-rar-compressed", "application/x-rar"], &[]),
    ("application/java-archive", Kind::Binary, &["jar", "war"], &[], &[]),
    ("application/wasm", Kind::Binary, &["wasm"], &[], &[]),
    ("application/vnd.sqlite3", Kind::Binary, &["sqlite", "sqlite3", "db"], &["application/x-sqlite3"], &[]),
    ("application/vnd.microsoft.portable-executable", Kind::Binary, &["exe", "dll"], &["application/x-msdownload"], &[]),
    ("application/x-sharedlib", Kind::Binary, &["so", "dylib", "a", "o"], &["application/x-executable", "application/x-mach-binary", "application/x-object"], &[]),
    ("application/java-vm", Kind::Binary, &["class"], &["application/java"], &[]),
    ("application/x-python-bytecode", Kind::Binary, &["pyc"], &["application/x-python-code-compiled"], &[]),
    ("application/vnd.apache.parquet", Kind::Binary, &["parquet"], &[], &[]),
    ("application/x-protobuf", Kind::Binary, &["pb"], &["application/protobuf"], &[]),
    ("image/png", Kind::Binary, &["png"], &[], &[]),
    ("image/jpeg", Kind::Binary, &["jpg", "jpeg"], &["image/jpg"], &[]),
    ("image/gif", Kind::Binary, &["gif"], &[], &[]),
    ("image/webp", Kind::Binary, &["webp"], &[], &[]),
    ("image/avif", Kind::Binary, &["avif"], &[], &[]),
    ("image/bmp", Kind::Binary, &["bmp"], &[], &[]),
    ("image/tiff", Kind::Binary, &["tif", "tiff"], &[], &[]),
    ("image/heif", Kind::Binary, &["heic", "heif"], &["image/heic"], &[]),
    ("image/vnd.microsoft.icon", Kind::Binary, &["ico"], &["image/x-icon"], &[]),
    ("audio/mpeg", Kind::Binary, &["mp3"], &[], &[]),
    ("audio/wav", Kind::Binary, &["wav"], &["audio/x-wav"], &[]),
    ("audio/ogg", Kind::Binary, &["ogg", "oga", "opus"], &[], &[]),
    ("audio/flac", Kind::Binary, &["flac"], &["audio/x-flac"], &[]),
    ("audio/mp4", Kind::Binary, &["m4a", "aac"], &["audio/m4a", "audio/aac"], &[]),
    ("video/mp4", Kind::Binary, &["mp4", "m4v"], &[], &[]),
    ("video/webm", Kind::Binary, &["webm"], &[], &[]),
    ("video/quicktime", Kind::Binary, &["mov"], &[], &[]),
    ("video/x-matroska", Kind::Binary, &["mkv"], &[], &[]),
    ("video/x-msvideo", Kind::Binary, &["avi"], &[], &[]),
    ("font/woff2", Kind::Binary, &["woff", "woff2"], &["font/woff", "application/font-woff"], &[]),
    ("font/ttf", Kind::Binary, &["ttf", "otf"], &["font/otf", "application/font-sfnt"], &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_is_taken_apart() {
        let rows: &[(&str, &str, Option<&str>, Option<&str>)] = &[
            ("text/plain", "text/plain", None, None),
            ("Text/Markdown; charset=UTF-8", "text/markdown", Some("utf-8"), None),
            (" TEXT/HTML ;profile=mcp-app", "text/html", None, Some("mcp-app")),
            ("text/plain;charset=\"GB18030\"", "text/plain", Some("gb18030"), None),
            ("text/plain; charset='big5'; format=flowed", "text/plain", Some("big5"), None),
            ("text/plain; charset", "text/plain", None, None),
            ("text/plain;;", "text/plain", None, None),
            ("", "", None, None),
            (";charset=utf-8", "", Some("utf-8"), None),
        ];
        for (declared, essence, charset, profile) in rows {
            let mime = MimeType::parse(declared);
            assert_eq!(mime.essence, *essence, "{declared}");
            assert_eq!(mime.charset.as_deref(), *charset, "{declared}");
            assert_eq!(mime.profile.as_deref(), *profile, "{declared}");
        }
    }

    #[test]
    fn types_have_a_kind() {
        let rows: &[(&str, Option<Kind>)] = &[
            ("text/plain", Some(Kind::Plain)),
            ("text/x-markdown", Some(Kind::Markdown)),
            ("application/xhtml+xml", Some(Kind::Html)),
            ("application/ld+json", Some(Kind::Json)),
            ("application/vnd.api+json", Some(Kind::Json)),
            ("application/problem+xml", Some(Kind::Xml)),
            ("application/openapi+yaml", Some(Kind::Yaml)),
            ("image/svg+xml", Some(Kind::Xml)),
            ("text/x-something-new", Some(Kind::Code)),
            ("text/something", Some(Kind::Plain)),
            ("image/png", Some(Kind::Binary)),
            ("image/never-heard-of", Some(Kind::Binary)),
            ("video/mp4", Some(Kind::Binary)),
            ("application/epub+zip", Some(Kind::Binary)),
            ("application/vnd.ms-project", Some(Kind::Binary)),
            ("application/octet-stream", None),
            ("application/x-unknown", None),
            ("nonsense", None),
            ("", None),
        ];
        for (essence, kind) in rows {
            assert_eq!(kind_of_type(essence), *kind, "{essence}");
        }
    }

    #[test]
    fn uris_have_a_type_by_their_suffix() {
        let rows: &[(&str, Option<&str>)] = &[
            ("handbook:///refunds.md", Some("text/markdown")),
            ("file:///a/b/README.MD", Some("text/markdown")),
            ("file:///a/b/README", Some("text/plain")),
            ("https://x.example/index.html?lang=en#top", Some("text/html")),
            ("https://x.example/?file=a.md", None),
            ("git://repo/src/main.rs", Some("text/x-rust")),
            ("file:///Dockerfile", Some("text/x-dockerfile")),
            ("file:///v1.2/notes", None),
            ("memo://insights", None),
            ("data:///a.tar.gz", Some("application/gzip")),
            ("docs:手册.md", Some("text/markdown")),
            ("screen://shot.png", Some("image/png")),
        ];
        for (uri, essence) in rows {
            assert_eq!(type_of_name(uri), *essence, "{uri}");
        }
    }

    #[test]
    fn no_suffix_or_type_stands_twice() {
        let mut seen = std::collections::HashSet::new();
        for row in TYPES {
            for suffix in row.2 {
                assert!(seen.insert(*suffix), "suffix {suffix} stands twice");
            }
        }
        let mut seen = std::collections::HashSet::new();
        for row in TYPES {
            for name in row.3.iter().chain([&row.0]) {
                seen.insert(*name);
            }
        }
        assert!(TYPES.iter().all(|row| row.0 == row.0.to_ascii_lowercase()));
    }

    #[test]
    fn reasons_name_what_is_missing() {
        let rows = [
            ("image/png", "image/png has no text"),
            ("application/pdf", "the content isn't application/pdf, and has no text"),
            ("application/x-xz", "archives of this kind are not opened (application/x-xz)"),
            ("application/octet-stream", "binary data has no text"),
            ("application/wasm", "application/wasm is binary and has no text"),
        ];
        for (essence, reason) in rows {
            assert_eq!(why_no_text(essence), reason);
        }
    }
}
