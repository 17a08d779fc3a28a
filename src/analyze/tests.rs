use proptest::prelude::*;

use super::*;

fn tokens(field: Field, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    Analyzer::new().analyze(field, text, &mut |token| tokens.push(token.clone()));
    tokens
}

/// The terms in order; those of one position joined by `|`.
fn terms(field: Field, text: &str) -> String {
    let mut line = String::new();
    let mut position = 0;
    for (i, token) in tokens(field, text).iter().enumerate() {
        if i > 0 {
            line.push(if token.position == position { '|' } else { ' ' });
        }
        line.push_str(&token.term);
        position = token.position;
    }
    line
}

fn check(field: Field, cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter(|(text, expected)| terms(field, text) != *expected)
        .map(|(text, expected)| {
            format!("{text:?}\n  expected {expected}\n  got      {}", terms(field, text))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a query for `asked` finds a document with the text, other than by a misspelling.
fn finds(asked: &str, text: &str) -> bool {
    let mut analyzer = Analyzer::new();
    let query = analyzer.query(asked);
    [Field::Body, Field::Word].into_iter().any(|field| {
        let held = tokens(field, text);
        let at = |term: &str| -> Vec<usize> {
            held.iter().filter(|t| t.term == term).map(|t| t.position).collect()
        };
        query.iter().filter(|term| term.field == field).any(|term| {
            !at(&term.term).is_empty()
                || (term.prefix && held.iter().any(|t| t.term.starts_with(&term.term)))
                || term.splits.iter().any(|[left, right]| {
                    at(left).iter().any(|&position| at(right).contains(&(position + 1)))
                })
        })
    })
}

#[test]
fn body_of_many_scripts() {
    check(
        Field::Body,
        &[
            ("", ""),
            ("The quick brown foxes jumped", "the quick brown fox jump"),
            ("Café naïve Ångström", "cafe naiv angstrom"),
            ("Straße, ﬁnding œuvre", "strass find oeuvr"),
            ("Tiếng Việt có dấu, Đà Nẵng", "tieng viet co dau da nang"),
            ("e\u{301}te\u{301}", "ete"),
            ("ＡＰＩ　ｋｅｙ１", "api key1|key 1"),
            ("软件开发", "软件 件开 开发 发"),
            ("軟體開發與測試", "软体 体开 开发 发与 与测 测试 试"),
            ("猫", "猫"),
            ("データベースの設計", "でー ーた たべ べー ーす すの の设 设计 计"),
            ("ﾃﾞｰﾀ", "でー ーた た"),
            ("한국어 검색은", "한국 국어 어 검색 색은 은"),
            ("Разработка программного обеспечения", "разработк программн обеспечен"),
            ("Ещё один, Москва\u{301}", "ещ один москв"),
            ("ύδωρ", "υδωρ"),
            ("हिन्दी सम्बन्ध बाँध क़ीमत", "हिंद संबंध बांध कीमत"),
            ("हिंदी संबंध बांध कीमत अन्न", "हिंद संबंध बांध कीमत अन्न"),
            ("α-линия", "alphaлиния|alpha лин"),
            ("البرمجيات مُحَمَّد", "برمج محمد"),
            ("हिन्दी में खोज १२", "हिंद म खोज 12"),
            ("ภาษาไทยไม่มีช่องว่าง", "ภาษา ไทย ไม่มี ช่อง ว่าง"),
            ("部署API到k8s集群", "部署 署 api 到 k8s|k 8 s 集群 群"),
            ("hi 🎉👩\u{200D}💻 🇨🇳!", "hi 🎉 👩 💻 🇨🇳"),
            (
                "soft\u{AD}ware zero\u{200B}width \u{202E}bidi \u{E0041}tag",
                "softwar zerowidth bidi tag",
            ),
        ],
    );
}

#[test]
fn body_of_code() {
    check(
        Field::Body,
        &[
            ("getUserName", "getusernam|get user name"),
            ("get_user_name", "getusernam|get user name"),
            ("user-names", "usernam|user name"),
            ("HTTPServer parseURLs", "httpserver|http server parseurl|pars url"),
            ("ERR_40002", "err40002|err 40002"),
            ("oauth2 k8s x86_64", "oauth2|oauth 2 k8s|k 8 s x8664|x86|x 8664|86 64"),
            ("C++ and C# or F#, i++", "c|c++ and c|c# or f|f# i|i++"),
            (".NET and ASP.NET", "net|.net and aspnet|asp net"),
            ("10.4.2", "10.4.2|10 4 2"),
            ("v1.2.3-rc1", "v1.2.3rc1|v1|v 1.2.3|1 2 3rc1|3 rc1|rc 1"),
            ("2024-01-15 1,000,000 1_000", "2024-01-15|2024 01 15 1000000|1 000 000 1000|1 000"),
            ("jane.doe@example.com", "janedoeexamplecom|jane doe exampl com"),
            ("/usr/local/lib", "usrlocallib|usr local lib"),
            (
                "https://example.com/a/b?page=2#top",
                "httpsexamplecomab|https exampl com a b page 2 top",
            ),
            ("std::fs::read_to_string()", "stdfsreadtostr|std fs readtostr|read to string"),
            ("don't O'Brien user's users’", "dont|don t obrien|o brien user user"),
            ("a3f5c9e2b1d4f6a8", "a3f5c9e2b1d4f6a8"),
            ("end. Start", "end start"),
        ],
    );
}

#[test]
fn words_as_written() {
    check(
        Field::Word,
        &[
            ("Running getUserName user_name", "running getusername user_name"),
            ("Đà Nẵng Café", "đà nẵng café"),
            ("don't user's 10.4.2 C++ index.md", "don't user 10.4.2 c++ index.md"),
            ("軟體開發", "软体 开发"),
            ("サーバーを設定する", "サーバ を 设定 する"),
            ("한국어 검색은", "한국어 검색은"),
            ("Ещё программы", "еще программы"),
            ("ภาษาไทย", "ภาษา ไทย"),
            ("部署API到k8s", "部署 api 到 k8s"),
        ],
    );
}

#[test]
fn spellings_find_one_another() {
    let groups: &[&[&str]] = &[
        &["getUserName", "get user name", "get_user_name", "get-user-name", "GET_USER_NAME"],
        &["user name", "username", "userName", "user_name", "UserName", "USERNAME", "user-name"],
        &["軟體開發", "软体开发"],
        &["ﾃﾞｰﾀ", "データ", "でーた"],
        &["ＡＰＩ", "api", "Api"],
        &["時々", "時時"],
        &["Đà Nẵng", "Da Nang", "đà nẵng", "DA NANG"],
        &["Müller", "muller", "MÜLLER", "Mu\u{308}ller"],
        &["Straße", "strasse"],
        &["ёлка", "елка", "ЁЛКА"],
        &["программа", "программы", "программами"],
        &["كتاب", "كِتَاب", "كتـاب"],
        &["أحمد", "احمد"],
        &["على", "علي"],
        &["किताब", "किताबें", "किताबों"],
        &["TNF-α", "TNF-alpha", "TNF\u{2010}α"],
        &["1,000,000", "1000000", "1_000_000"],
        &["١٢٣", "123", "１２３"],
        &["don't", "dont", "don’t"],
        &["user's", "user", "user’s", "users"],
        &["e-mail", "email", "E-Mail"],
        &["Οδός", "ΟΔΟΣ", "οδος"],
    ];
    for group in groups {
        for a in *group {
            for b in *group {
                assert!(finds(a, b), "{a:?} doesn't find {b:?}");
            }
        }
    }
}

#[test]
fn parts_find_the_whole_and_the_whole_itself() {
    let cases: &[(&str, &[&str])] = &[
        ("see ERR_40002 there", &["ERR_40002", "err40002", "40002"]),
        ("an OAuth2 token", &["oauth2", "OAuth", "oauth 2"]),
        ("version v1.2.3-rc1 is out", &["v1.2.3-rc1", "1.2.3", "rc1", "v1.2.3"]),
        ("mail jane.doe@example.com now", &["jane.doe@example.com", "jane", "example.com"]),
        ("in /usr/local/lib/site-packages", &["/usr/local/lib/site-packages", "site-packages"]),
        ("https://example.com/a?b=c", &["https://example.com/a?b=c", "example.com", "example"]),
        ("use std::fs::read_to_string;", &["read_to_string", "readToString", "std::fs"]),
        ("部署API到k8s", &["部署", "API", "k8s", "部署api"]),
        ("我家的猫很可爱", &["猫", "可爱", "家的"]),
        ("お寿司を食べる", &["寿司", "食べる", "食"]),
        ("서울에서 만나요", &["서울은", "서울"]),
        ("ภาษาไทยไม่มีช่องว่าง", &["ภาษาไทย", "ช่องว่าง"]),
        ("ຂ້ອຍຮັກພາສາລາວ", &["ພາສາລາວ"]),
        ("party 🎉 now", &["🎉"]),
        ("हिन्दी में खोज", &["खोज"]),
    ];
    for (text, queries) in cases {
        for query in *queries {
            assert!(finds(query, text), "{query:?} doesn't find {text:?}");
        }
    }
}

#[test]
fn names_with_punctuation_are_told_apart() {
    for (query, text, other) in [
        ("C++", "written in C++.", "written in C."),
        ("C#", "written in C#,", "written in C,"),
        (".NET", "the .NET runtime", "the net runtime"),
        ("10.4.2", "release 10.4.2", "release 2 of 10, 4"),
    ] {
        let held = |text| tokens(Field::Body, text).into_iter().map(|token| token.term);
        let whole = query.to_lowercase();
        assert!(Analyzer::new().query(query).iter().any(|term| term.term == whole), "{query}");
        assert!(held(text).any(|term| term == whole), "{text}");
        assert!(!held(other).any(|term| term == whole), "{other}");
    }
}

#[test]
fn unrelated_words_do_not_meet() {
    for (asked, text) in [
        ("猫", "犬が好き"),
        ("大学", "学大"),
        ("username", "use rename"),
        ("1.2", "12"),
        ("サラ", "ラサ"),
    ] {
        assert!(!finds(asked, text), "{asked:?} finds {text:?}");
    }
}

#[test]
fn offsets_point_into_the_original() {
    let cases: &[(&str, &[&str])] = &[
        ("Đà Nẵng", &["Đà", "Nẵng"]),
        ("x ﾃﾞｰﾀ", &["x", "ﾃﾞｰ", "ｰﾀ", "ﾀ"]),
        ("e\u{301}te\u{301} ok", &["e\u{301}te\u{301}", "ok"]),
        ("eﬃcient", &["eﬃcient"]),
        ("ｇｅｔＵser", &["ｇｅｔＵser", "ｇｅｔ", "Ｕser"]),
        ("zero\u{200B}width", &["zero\u{200B}width"]),
        ("first\nÉcole\nlast", &["first", "École", "last"]),
        ("น้ำใจ", &["น้ำใจ"]),
    ];
    for (text, expected) in cases {
        let parts: Vec<&str> =
            tokens(Field::Body, text).iter().map(|token| &text[token.from..token.to]).collect();
        assert_eq!(parts, *expected, "{text:?}");
    }
}

#[test]
fn queries_say_what_else_may_be_tried() {
    let query = Analyzer::new().query("retreival of 猫 k8s データ");
    let flags: Vec<(&str, bool, bool)> = query
        .iter()
        .filter(|term| term.field == Field::Body)
        .map(|term| (term.term.as_str(), term.fuzzy, term.prefix))
        .collect();
    assert_eq!(
        flags,
        [
            ("retreiv", true, false),
            ("of", false, false),
            ("猫", false, true),
            ("k8s", false, false),
            ("k", false, false),
            ("8", false, false),
            ("s", false, false),
            ("でー", false, false),
            ("ーた", false, false),
            ("retreivalof", false, false),
        ]
    );
}

#[test]
fn pairs_of_hiragana_are_left_out_unless_they_are_a_word() {
    let body = |text: &str| -> String {
        let terms = Analyzer::new().query(text);
        let body = terms.iter().filter(|term| term.field == Field::Body);
        body.map(|term| term.term.as_str()).collect::<Vec<_>>().join(" ")
    };
    for (query, expected) in [
        ("京都にあります", "京都 都に"),
        ("ありますか", "あり りま ます すか"),
        ("ぷりんたー", "ぷり りん んた たー"),
        ("京都のらーめん", "京都 都の のら らー ーめ めん"),
        ("データーをもつ", "でー ーた たー ーを"),
    ] {
        assert_eq!(body(query), expected, "{query}");
    }
}

#[test]
fn phrases_keep_their_distances() {
    let phrase = |text: &str| -> Vec<(String, usize)> {
        let terms = Analyzer::new().phrase(text);
        terms.into_iter().map(|term| (term.term, term.position)).collect()
    };
    let expect = |terms: &[(&str, usize)]| -> Vec<(String, usize)> {
        terms.iter().map(|(term, position)| ((*term).to_owned(), *position)).collect()
    };
    assert_eq!(phrase("getUserName"), expect(&[("get", 0), ("user", 1), ("name", 2)]));
    assert_eq!(phrase("東京都、港区"), expect(&[("东京", 0), ("京都", 1), ("港区", 3)]));
    assert_eq!(phrase("部署 API"), expect(&[("部署", 0), ("api", 2)]));
    assert_eq!(phrase("a3f5c9e2b1d4f6a8"), expect(&[("a3f5c9e2b1d4f6a8", 0)]));
    assert_eq!(phrase("…"), expect(&[]));
    let prefixes = |text: &str| -> Vec<bool> {
        Analyzer::new().phrase(text).iter().map(|term| term.prefix).collect()
    };
    assert_eq!(prefixes("猫"), [true]);
    assert_eq!(prefixes("到 API 到"), [false, false, true]);
    assert_eq!(prefixes("部署"), [false]);
}

#[test]
fn an_analyzer_goes_to_any_thread() {
    fn is_sendable<T: Send + Sync + 'static>() {}
    is_sendable::<Analyzer>();
}

#[test]
fn words_too_long_are_dropped() {
    let base64 = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo".repeat(100);
    for field in [Field::Body, Field::Word] {
        assert_eq!(terms(field, &format!("a {base64} b")), "a b", "{field:?}");
        assert!(tokens(field, &"x".repeat(100_000)).is_empty(), "{field:?}");
    }
}

/// Text as the world has it: many scripts, code, marks, and what breaks programs.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => any::<char>().prop_map(String::from),
        2 => "[a-zA-Z0-9_./:@'+#,-]{1,12}",
        2 => "[ \n\t.,]{1,2}",
        2 => "[\u{300}-\u{36F}\u{3099}\u{FF9E}\u{200B}-\u{200F}\u{E0041}\u{1F3FB}\u{1F1E6}]{1,3}",
        2 => "[ぁ-ヺｦ-ﾟー々一-龥가-힣]{1,6}",
        2 => "[ก-ฺเ-๎ກ-ໝက-ဿក-៓]{1,8}",
        2 => "[À-ỹА-яёΑ-ωء-يऀ-ॿ]{1,8}",
        1 => "[ﬀ-ﬆ①-⑳㌀-㍗ℵÅ]{1,2}",
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn tokens_lie_in_the_text_in_order(text in text()) {
        for field in [Field::Body, Field::Word] {
            let tokens = tokens(field, &text);
            let mut position = 0;
            for token in &tokens {
                prop_assert!(token.from < token.to);
                prop_assert!(text.get(token.from..token.to).is_some(), "{:?} of {:?}", token, text);
                prop_assert!(!token.term.is_empty() && token.term.len() <= 4 * MAX_COMPOUND);
                prop_assert!(token.position >= position);
                position = token.position;
            }
        }
    }

    #[test]
    fn lines_are_independent(a in text(), b in text()) {
        let mut analyzer = Analyzer::new();
        for field in [Field::Body, Field::Word] {
            let mut all = |text: &str| {
                let mut tokens = Vec::new();
                analyzer.analyze(field, text, &mut |token| tokens.push(token.clone()));
                let end = analyzer.token.position;
                (tokens, end)
            };
            let (mut expected, end) = all(&a);
            let shift = a.len() + 1;
            expected.extend(all(&b).0.into_iter().map(|token| Token {
                from: token.from + shift,
                to: token.to + shift,
                position: token.position + end,
                ..token
            }));
            // A used analyzer, with its cache filled, says the same as a new one.
            let whole = format!("{a}\n{b}");
            prop_assert_eq!(&all(&whole).0, &expected);
            prop_assert_eq!(&tokens(field, &whole), &expected);
        }
    }

    #[test]
    fn a_text_is_found_by_itself(text in text()) {
        let mut analyzer = Analyzer::new();
        let query = analyzer.query(&text);
        let held = [tokens(Field::Body, &text), tokens(Field::Word, &text)];
        prop_assert_eq!(query.is_empty(), held.iter().all(Vec::is_empty));
        let mut seen = std::collections::HashSet::new();
        for term in &query {
            prop_assert!(text.get(term.from..term.to).is_some());
            prop_assert!(seen.insert((term.field, term.term.clone())), "{:?} twice", term);
        }
        for term in analyzer.phrase(&text) {
            prop_assert!(held[0].iter().any(|token| token.term == term.term));
        }
    }
}
