use super::*;
use crate::config::dialect::Dialect;

/// A file of each dialect with the same seven kinds of server: set and unset variables, an unknown
/// key, a switched-off server where the client knows such, a remote one, one with env and folder.
pub(super) const FILES: [(&str, Dialect, &str); 8] = [
    (
        "p/.mcp.json",
        Dialect::ClaudeCode,
        r#"{"mcpServers": {
            "unset": {"command": "npx", "args": ["${NO_SUCH}"]},
            "odd": {"command": "npx", "type": "stdio", "colour": "red"},
            "remote": {"type": "http", "url": "${BASE:-https://wiki.example}/mcp",
                       "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 60000},
            "old": {"type": "sse", "url": "https://old.example/sse"},
            "local": {"command": "./bin/serve", "args": ["--port", 7], "env": {"API_KEY": "${TOKEN}", "N": 1}},
            "helper": {"type": "http", "url": "https://x.example/", "headersHelper": "get-token.sh"},
            "self": {"command": "resdex", "args": ["mcp"]}
        }}"#,
    ),
    (
        "p/.vscode/mcp.json",
        Dialect::VsCode,
        r#"{
            // VS Code allows comments
            "inputs": [{"id": "api-key", "type": "promptString", "password": true}],
            "servers": {
                "unset": {"command": "npx", "args": ["${env:NO_SUCH}"]},
                "asks": {"type": "http", "url": "https://x.example/", "headers": {"X-Key": "${input:api-key}"}},
                "odd": {"type": "stdio", "command": "npx", "colour": "red"},
                "remote": {"type": "http", "url": "https://wiki.example/mcp",
                           "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
                "old": {"type": "sse", "url": "https://old.example/sse"},
                "sock": {"type": "http", "url": "unix:///run/x.sock#/mcp"},
                "local": {"command": "./bin/serve", "args": ["--port", "7", "${workspaceFolder}/d", "${userHome}"],
                          "env": {"API_KEY": "${env:TOKEN}", "N": "1", "GONE": null}, "envFile": "${workspaceFolder}/.env"},
            }
        }"#,
    ),
    (
        "p/.cursor/mcp.json",
        Dialect::Cursor,
        r#"{"mcpServers": {
            "unset": {"command": "npx", "args": ["${env:NO_SUCH}"]},
            "odd": {"command": "npx", "colour": "red"},
            "remote": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
            "old": {"type": "sse", "url": "https://old.example/sse"},
            "local": {"command": "./bin/serve", "args": ["--port", "7"],
                      "env": {"API_KEY": "${env:TOKEN}", "N": "1"}, "envFile": ".env"}
        }}"#,
    ),
    (
        "p/cline_mcp_settings.json",
        Dialect::Cline,
        r#"{"mcpServers": {
            "unset": {"command": "npx", "args": ["${env:NO_SUCH}"], "timeout": 60},
            "odd": {"command": "npx", "colour": "red", "autoApprove": []},
            "off": {"command": "npx", "disabled": true},
            "remote": {"type": "streamableHttp", "url": "https://wiki.example/mcp",
                       "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
            "old": {"url": "https://old.example/sse"},
            "local": {"command": "./bin/serve", "args": ["--port", "7"],
                      "env": {"API_KEY": "${env:TOKEN}", "N": "1"}, "disabled": false}
        }}"#,
    ),
    (
        "p/.gemini/settings.json",
        Dialect::Gemini,
        r#"{"theme": "dark", "mcp": {"excluded": ["off"]}, "mcpServers": {
            "unset": {"command": "npx", "args": ["$NO_SUCH"]},
            "odd": {"command": "npx", "colour": "red", "trust": true},
            "off": {"command": "npx"},
            "remote": {"httpUrl": "https://wiki.example/mcp",
                       "headers": {"Authorization": "Bearer $TOKEN"}, "timeout": 600000},
            "old": {"url": "https://old.example/sse"},
            "local": {"command": "./bin/serve", "args": ["--port", "7"],
                      "env": {"API_KEY": "${TOKEN}", "N": "1"}}
        }}"#,
    ),
    (
        "p/mcp_config.json",
        Dialect::Windsurf,
        r#"{"mcpServers": {
            "unset": {"command": "npx", "args": ["${env:NO_SUCH}"]},
            "odd": {"command": "npx", "colour": "red"},
            "off": {"command": "npx", "disabled": true},
            "remote": {"serverUrl": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
            "old": {"type": "sse", "serverUrl": "https://old.example/sse"},
            "local": {"command": "./bin/serve", "args": ["--port", "7"],
                      "env": {"API_KEY": "${env:TOKEN}", "N": "1"}}
        }}"#,
    ),
    (
        "p/.codex/config.toml",
        Dialect::Codex,
        r#"
            model = "x"
            [mcp_servers.unset]
            url = "https://x.example/"
            bearer_token_env_var = "NO_SUCH"
            [mcp_servers.odd]
            command = "npx"
            colour = "red"
            [mcp_servers.off]
            command = "npx"
            enabled = false
            [mcp_servers.remote]
            url = "https://wiki.example/mcp"
            bearer_token_env_var = "TOKEN"
            http_headers = { X-Team = "docs" }
            [mcp_servers.old]
            type = "sse"
            url = "https://old.example/sse"
            [mcp_servers.local]
            command = "./bin/serve"
            args = ["--port", "7"]
            env = { API_KEY = "sesame", N = "1" }
            env_vars = ["HTTPS_PROXY"]
        "#,
    ),
    (
        "p/servers.json",
        Dialect::Generic,
        r#"{"mcpServers": {
            "unset": {"command": "npx", "args": ["${NO_SUCH}"]},
            "odd": {"command": "npx", "colour": "red"},
            "remote": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
            "old": {"type": "sse", "url": "https://old.example/sse"},
            "local": {"command": "./bin/serve", "args": ["--port", "7"],
                      "env": {"API_KEY": "${TOKEN}", "N": "1"}}
        }}"#,
    ),
];

fn folder_with(name: &str, text: &str) -> Folder {
    Folder::with(&[(name, text), ("p/.env", "FROM_FILE=filed")])
}

fn load(name: &str, text: &str) -> (Folder, Config) {
    let folder = folder_with(name, text);
    let config = folder.load(&[name], &[("TOKEN", "sesame"), ("HOME", "/home/u")]).unwrap();
    (folder, config)
}

#[test]
fn a_dialect_is_told_by_path_then_by_keys() {
    let keyed = |key: &str| format!(r#"{{"mcpServers": {{"a": {{"command": "x", "{key}": 1}}}}}}"#);
    let cases = [
        ("a/mcp.json".to_owned(), keyed("x"), Dialect::Generic),
        ("a/mcp.json".to_owned(), keyed("httpUrl"), Dialect::Gemini),
        ("a/mcp.json".to_owned(), keyed("serverUrl"), Dialect::Windsurf),
        ("a/mcp.json".to_owned(), keyed("autoApprove"), Dialect::Cline),
        ("a/mcp.json".to_owned(), keyed("envFile"), Dialect::Cursor),
        ("a/mcp.json".to_owned(), r#"{"servers": {}}"#.into(), Dialect::VsCode),
        ("a/settings.json".to_owned(), r#"{"mcp": {"servers": {}}}"#.into(), Dialect::VsCode),
        ("a/settings.json".to_owned(), r#"{"mcpServers": {}}"#.into(), Dialect::Gemini),
        ("a/.claude.json".to_owned(), r#"{"mcpServers": {}}"#.into(), Dialect::ClaudeCode),
        ("a/x.toml".to_owned(), "[mcp_servers]".into(), Dialect::Codex),
        ("a/x.toml".to_owned(), "".into(), Dialect::Own),
        ("a/no-suffix".to_owned(), "// note\n{\"servers\": {}}".into(), Dialect::VsCode),
    ];
    let files = FILES.map(|(name, dialect, text)| (name.to_owned(), text.to_owned(), dialect));
    for (name, text, wanted) in cases.into_iter().chain(files) {
        let source = tree::Source::parse(Path::new("/").join(&name), text).unwrap();
        assert_eq!(dialect::of(&source), wanted, "{name}");
    }
}

#[test]
fn every_dialect_does_the_same() {
    for (name, dialect, text) in FILES {
        let (folder, config) = load(name, text);
        let project = folder.path("p");

        let unset = state(server(&config, "unset"));
        assert!(unset.starts_with("needs_config: "), "{name}: {unset}");
        assert!(unset.contains("the variable NO_SUCH isn't set; set NO_SUCH"), "{name}: {unset}");

        assert_eq!(state(server(&config, "odd")), "ready", "{name}");
        let notes = config.notes.join("\n");
        assert!(
            notes.ends_with("the server odd has keys that resdex passes over: colour"),
            "{name}: {notes}"
        );
        assert_eq!(config.notes.len(), 1, "{name}: {notes}");

        if let Some(off) = config.servers.get("off") {
            assert!(state(off).starts_with("disabled: "), "{name}");
        } else {
            let knows_none =
                [Dialect::ClaudeCode, Dialect::VsCode, Dialect::Cursor, Dialect::Generic];
            assert!(knows_none.contains(&dialect), "{name}");
        }

        let remote = server(&config, "remote");
        assert_eq!(state(remote), "ready", "{name}");
        let Transport::Http { url, headers, unix_socket: None } = &remote.transport else {
            panic!("{name}: not http")
        };
        assert_eq!(url, "https://wiki.example/mcp", "{name}");
        assert_eq!(headers["Authorization"].expose(), "Bearer sesame", "{name}");

        let old = state(server(&config, "old"));
        assert!(old.starts_with("needs_config: "), "{name}: {old}");
        assert!(old.contains("mcp-remote") && old.contains("supergateway"), "{name}: {old}");

        let local = server(&config, "local");
        assert_eq!(state(local), "ready", "{name}");
        let Transport::Stdio { command, args, env, cwd, .. } = &local.transport else {
            panic!("{name}: not stdio")
        };
        assert_eq!(Path::new(command), project.join("bin/serve"), "{name}");
        assert_eq!((args[0].expose(), args[1].expose()), ("--port", "7"), "{name}");
        assert_eq!((env["API_KEY"].expose(), env["N"].expose()), ("sesame", "1"), "{name}");
        assert_eq!(cwd, &project, "{name}");
        assert!(!format!("{config:?}").contains("sesame"), "{name}");
    }
}

#[test]
fn what_only_one_client_has() {
    let (folder, claude) = load(FILES[0].0, FILES[0].2);
    assert!(state(server(&claude, "helper")).starts_with("needs_config: its `headersHelper`"));
    assert!(state(server(&claude, "self")).starts_with("disabled: it would start resdex itself"));
    drop(folder);

    let (folder, code) = load(FILES[1].0, FILES[1].2);
    assert_eq!(
        state(server(&code, "asks")),
        "needs_config: headers.X-Key: ${input:api-key} asks a person for a value; \
         replace it with ${env:API_KEY} and set that variable"
    );
    let Transport::Http { url, unix_socket, .. } = &server(&code, "sock").transport else {
        panic!("not http")
    };
    assert_eq!(
        (url.as_str(), unix_socket.as_deref()),
        ("http://localhost/mcp", Some(Path::new("/run/x.sock")))
    );
    let Transport::Stdio { args, env, .. } = &server(&code, "local").transport else {
        panic!("not stdio")
    };
    assert_eq!(args[2].expose(), folder.path("p/d").display().to_string());
    assert_eq!(args[3].expose(), "/home/u");
    assert_eq!(env["FROM_FILE"].expose(), "filed");
    assert_eq!(code.masker.mask("it says filed"), "it says ***");
    assert!(!env.contains_key("GONE"));
    assert!(code.watched.contains(&folder.path("p/.env")));

    let (_folder, codex) = load(FILES[6].0, FILES[6].2);
    let Transport::Stdio { inherit_env, .. } = &server(&codex, "local").transport else {
        panic!("not stdio")
    };
    assert_eq!(inherit_env, &["HTTPS_PROXY"]);
    let Transport::Http { headers, .. } = &server(&codex, "remote").transport else {
        panic!("not http")
    };
    assert_eq!(headers["X-Team"].expose(), "docs");
}

#[test]
fn references_of_each_dialect() {
    let env = [("SET", "value"), ("HOME", "/home/u")];
    for (name, text, wanted) in [
        (".mcp.json", "${SET}", Some("value")),
        (".mcp.json", "${NO:-d}", Some("d")),
        (".mcp.json", "${env:SET}", None),
        (".mcp.json", "$SET", Some("$SET")),
        (".vscode/mcp.json", "${SET}", None),
        (".vscode/mcp.json", "${env:SET}", Some("value")),
        (".vscode/mcp.json", "${workspaceFolderBasename}", Some("p")),
        (".vscode/mcp.json", "${command:x}", None),
        (".cursor/mcp.json", "${userHome}${/}x", Some("/home/u/x")),
        (".cursor/mcp.json", "${input:x}", None),
        ("cline_mcp_settings.json", "${env:SET}", Some("value")),
        ("cline_mcp_settings.json", "${userHome}", None),
        ("settings.json", "$SET-$SET", Some("value-value")),
        ("settings.json", "${SET}", Some("value")),
        ("settings.json", "$5", Some("$5")),
        ("settings.json", "$NO", None),
        ("mcp_config.json", "${SET}", None),
        ("mcp_config.json", "${env:SET}", Some("value")),
        ("other.json", "${SET}${env:SET}", Some("valuevalue")),
        ("other.json", "${file:x}", None),
    ] {
        let key = if name.contains(".vscode") { "servers" } else { "mcpServers" };
        let json = format!(r#"{{"{key}": {{"a": {{"command": "x", "env": {{"V": "{text}"}}}}}}}}"#);
        let name = format!("p/{name}");
        let config = Folder::with(&[(&name, &json)]).load(&[&name], &env).unwrap();
        let a = server(&config, "a");
        let Transport::Stdio { env, .. } = &a.transport else { panic!("not stdio") };
        match wanted {
            Some(wanted) => assert_eq!(
                (state(a).as_str(), env["V"].expose()),
                ("ready", wanted),
                "{name} {text}"
            ),
            None => assert!(state(a).starts_with("needs_config"), "{name} {text}"),
        }
    }
    let codex = "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"${SET}\"]";
    let config = Folder::with(&[("c.toml", codex)]).load(&["c.toml"], &env).unwrap();
    assert!(
        state(server(&config, "a")).starts_with("needs_config: args: ${SET} can't be expanded")
    );
}

#[test]
fn one_broken_server_leaves_the_others_alone() {
    let json = r#"{"mcpServers": {
        "good": {"command": "x"},
        "a/b": {"command": "x"},
        "list": [],
        "nothing": {},
        "args": {"command": "x", "args": "y"},
        "env": {"command": "x", "env": {"A": []}},
        "type": {"type": "ws", "url": "wss://x"},
        "url": {"url": "not a url"},
        "no-url": {"type": "http"},
        "header": {"url": "https://x.example", "headers": {"a b": "c"}}
    }}"#;
    let folder = Folder::with(&[(".mcp.json", json)]);
    let config = folder.load(&[".mcp.json"], &[]).unwrap();
    for (name, wanted) in [
        ("good", "ready"),
        ("list", "needs_config: the entry must be a table, not a list; correct it in "),
        ("nothing", "needs_config: neither `command` nor `url` is there"),
        ("args", "needs_config: `args` must be a list of strings, not a string"),
        ("env", "needs_config: `env.A` must be a string, not a list"),
        ("type", "needs_config: the type \"ws\" isn't known"),
        ("url", "needs_config: its URL isn't one: relative URL without a base"),
        ("no-url", "needs_config: `url` is missing"),
        ("header", "needs_config: \"a b\" isn't the name of a header"),
    ] {
        let state = state(server(&config, name));
        assert!(state.starts_with(wanted), "{name}: {state}");
    }
    assert!(
        config.warnings[0].contains("this server is left out: a server's name has no '/' in it")
    );
    assert_eq!(config.servers.len(), 9);
}

#[test]
fn broken_files() {
    for (text, wanted) in [
        ("{\"mcpServers\": {\"a\": }}", ".mcp.json:1:22: isn't valid JSON: "),
        (
            "{\n\"mcpServers\": {\n\"a\": {}, \"a\": {}}}",
            ".mcp.json:3:10: has the server \"a\" twice; rename one",
        ),
        ("", ".mcp.json:1:1: is empty"),
        (
            "[]",
            ".mcp.json:1:1: has no MCP servers in it; expected an object with `mcpServers` or `servers`",
        ),
        ("{\"mcpServers\": 3}", ".mcp.json:1:16: `mcpServers` must be a table, not a whole number"),
    ] {
        let errors = Folder::with(&[(".mcp.json", text)]).errors(&[".mcp.json"], &[]);
        assert!(errors.starts_with(wanted), "{text}: {errors}");
    }
    let empty = Folder::with(&[(".mcp.json", "{}")]).load(&[".mcp.json"], &[]).unwrap();
    assert!(empty.warnings[0].ends_with(".mcp.json: has no MCP servers in it"));
}

#[test]
fn additions_to_a_client_file() {
    let json =
        r#"{"mcpServers": {"docs": {"command": "npx"}, "wiki": {"url": "https://w.example"}}}"#;
    let folder = |toml: &str| Folder::with(&[(".mcp.json", json), ("config.toml", toml)]);
    let toml = "[servers.docs]\ninherit_env = [\"HTTPS_PROXY\"]\nschedule = \"0 0 3 * * *\"\n\
                include = [\"docs://**\"]\nprotocol = \"modern\"\n[servers.wiki]\nenabled = false";
    // Whichever comes first.
    for files in [["config.toml", ".mcp.json"], [".mcp.json", "config.toml"]] {
        let config = folder(toml).load(&files, &[]).unwrap();
        let docs = server(&config, "docs");
        assert_eq!(docs.follow.protocol, ProtocolChoice::Modern);
        assert_eq!(docs.follow.include, ["docs://**"]);
        let Transport::Stdio { inherit_env, .. } = &docs.transport else { panic!("not stdio") };
        assert_eq!(inherit_env, &["HTTPS_PROXY"]);
        assert!(docs.origin.contains(".mcp.json:1"));
        assert!(state(server(&config, "wiki")).starts_with("disabled"));
    }
    for (toml, wanted) in [
        (
            "[servers.dogs]\nprotocol = \"auto\"",
            "config.toml:1:10: the server dogs has no `command`, `url` or `files`, and no client file has it; did you mean `docs`?",
        ),
        (
            "[servers.wiki]\ninherit_env = [\"A\"]",
            "config.toml:1:10: the server wiki is no child process: it inherits no variables; take `inherit_env` out",
        ),
        (
            "[servers.docs]\nargs = []",
            "config.toml:2:1: `args` needs a `command`, `url` or `files` in [servers.docs]",
        ),
    ] {
        assert_eq!(folder(toml).errors(&["config.toml", ".mcp.json"], &[]), wanted);
    }
}

#[test]
fn one_name_in_two_client_files() {
    let entry =
        |args: &str| format!(r#"{{"servers": {{"a": {{"command": "npx", "args": [{args}]}}}}}}"#);
    for (first, second, same) in [
        ("\"-y\", \"x\"", "\"-y\", \"x\"", true),
        ("\"-y\", \"x\"", "\"-y\", \"z\"", false),
        // The argument is a file of one of the folders, so the servers differ.
        ("\"server.py\"", "\"server.py\"", false),
    ] {
        let folder = Folder::with(&[
            ("p/.vscode/mcp.json", &entry(first)),
            ("q/mcp.json", &entry(second)),
            ("q/server.py", ""),
        ]);
        let loaded = folder.load(&["p/.vscode/mcp.json", "q/mcp.json"], &[]);
        assert_eq!(loaded.is_ok(), same, "{first} {second}");
        if let Err(errors) = loaded {
            let text = errors.to_string();
            assert!(
                text.contains("q/mcp.json:1") && text.contains("p/.vscode/mcp.json:1"),
                "{text}"
            );
        }
    }
}
