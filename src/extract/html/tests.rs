use super::*;
use expect_test::{Expect, expect};
use proptest::strategy::Strategy;

fn check(html: &str, expected: Expect) {
    let found = convert(html);
    let title = found.outline.title.as_deref().unwrap_or("–");
    expected.assert_eq(&format!("{title}\n\n{}", found.text));
    for heading in &found.outline.headings {
        let line = found.text[heading.at..].lines().next().unwrap();
        assert!(
            line.starts_with('#') && line.trim_start_matches('#').trim_start() == heading.text,
            "{line}"
        );
        assert!(heading.at == 0 || found.text.as_bytes()[heading.at - 1] == b'\n');
    }
}

#[test]
fn a_page_becomes_markdown() {
    check(
        "<!DOCTYPE html><html><head><title> Refund\n policy </title><style>.x{}</style>
         <script>var mimescript = '<p>no</p>';</script></head><body>
         <nav><ul><li><a href=/>Home</a></ul></nav>
         <main><h1>Refunds &amp; <em>returns</em></h1>
         <p>Within <b>thirty</b>  days.<br>No fee.</p>
         <h2>退款<a href='#x'>¶</a></h2>
         <ol start=3><li>Write to us<li><p>Wait</p><ul><li>a day</li><li>or two</li></ul></li></ol>
         <p>Use <code>snake_case_name</code> and ERR_40002 * [x].</p>
         <blockquote><p>Quoted.</p></blockquote>
         <hr><img src=x alt='A map'></main><footer>© shop</footer></body></html>",
        expect![[r#"
            Refund policy

            # Refunds & returns

            Within thirty days.
            No fee.

            ## 退款

            3. Write to us
            4. Wait
              - a day
              - or two

            Use snake_case_name and ERR_40002 * [x].

            Quoted.

            A map

            © shop
        "#]],
    );
}

#[test]
fn tables_keep_their_rows() {
    check(
        "<h1>T</h1><table><caption>Times</caption><thead><tr><th>Item<th>Time</tr></thead>
         <tbody><tr><td>Book</td><td><p>30 days</p><p>or more</p></td></tr>
         <tr><td>a|b</td><td></td></tr></tbody></table><p>after",
        expect![[r#"
            T

            # T

            Times

            | Item | Time |
            | --- | --- |
            | Book | 30 days or more |
            | a\|b | |

            after
        "#]],
    );
    check(
        "<table><tr><td><h2>Layout</h2><p>Left</p></td><td>Right</td></tr></table>",
        expect![[r#"
            –

            ## Layout

            Left

            Right
        "#]],
    );
    check(
        "<table><tr><td><table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table></td><td>x</td></tr></table>",
        expect![[r#"
            –

            | a | b |
            | --- | --- |
            | c | d |

            x
        "#]],
    );
    check(
        "<table><tr><td>only</td></tr><tr><td>one</td></tr></table>",
        expect![[r#"
        –

        only
        one
    "#]],
    );
    check(
        "<table><tr><td>a</td>stray<td>b</td></tr></table>",
        expect![[r#"
        –

        a
        stray
        b
    "#]],
    );
}

#[test]
fn code_keeps_its_lines() {
    check(
        "<p>Run:</p><pre><code class=language-sh>\n$ a_b --c\n\n  indented   here\n</code></pre><p>done",
        expect![[r#"
            –

            Run:

            ```
            $ a_b --c

              indented   here
            ```

            done
        "#]],
    );
    check(
        "<pre>```\nfenced\n```</pre>",
        expect![[r#"
        –

        ````
        ```
        fenced
        ```
        ````
    "#]],
    );
    check(
        "<pre></pre>text<pre>\n\n</pre>",
        expect![[r#"
        –

        text
    "#]],
    );
}

#[test]
fn sloppy_markup_is_read() {
    check(
        "<p>one<p>two<div>three</b></div></p>four",
        expect![[r#"
        –

        one

        two

        three

        four
    "#]],
    );
    check(
        "<div><nav><a>menu</div><p>content",
        expect![[r#"
        –

        content
    "#]],
    );
    check(
        "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e",
        expect![[r#"
        –

        - a
        - b
          - c
        - d

        e
    "#]],
    );
    check(
        "<dl><dt>Term<dd>Meaning<dt>Other<dd>More</dl>",
        expect![[r#"
        –

        Term
        Meaning
        Other
        More
    "#]],
    );
    check(
        "<h1></h1><h2> <br> </h2><h1>Real<br>title</h1>",
        expect![[r#"
        Real title

        # Real title
    "#]],
    );
    check(
        "<details><summary>Ask</summary>Answer</details><select><option>A<option>B</select>",
        expect![[r#"
            –

            Ask
            Answer

            A
            B
        "#]],
    );
    check(
        "<svg><title>icon</title><path/><text>label</text></svg><title>Page</title>",
        expect![[r#"
            Page

            icon
            label
        "#]],
    );
    check(
        "text &lt;tag&gt; &nbsp; &#x9000;&#27454; &bogus; & more",
        expect![[r#"
        –

        text <tag>   退款 &bogus; & more
    "#]],
    );
    check(
        "สวัสดี<wbr>ครับ<b>ทุก</b>คน",
        expect![[r#"
        –

        สวัสดีครับทุกคน
    "#]],
    );
    check(
        "<script>a</script><!-- c --><![CDATA[x]]>",
        expect![[r#"
            –

        "#]],
    );
}

#[test]
fn content_is_never_cut_to_nothing() {
    check(
        "<body><nav>Only navigation</nav></body>",
        expect![[r#"
        –

        Only navigation
    "#]],
    );
    check(
        "<noscript>Please enable</noscript>",
        expect![[r#"
            –

            Please enable
        "#]],
    );
    check(
        "<script>never closed <p>but text",
        expect![[r#"
        –

        never closed but text"#]],
    );
    check(
        "<div role=navigation>x</div>",
        expect![[r#"
        –

        x
    "#]],
    );
    check(
        "",
        expect![[r#"
        –

    "#]],
    );
}

/// Work is bounded by the input: as many tokens again take as much text again, however nested.
#[test]
fn hostile_markup_is_read_in_one_pass() {
    let rows = [
        ("<div>".repeat(10_000) + "deep", "deep\n"),
        ("<b>".repeat(10_000) + "deep" + &"</i>".repeat(10_000), "deep\n"),
        ("<table><tr><td>".repeat(5_000) + "deep", "deep\n"),
        ("<blockquote><ul><li>".repeat(5_000) + "deep", ""),
        (format!("<p {}>text", "a b=c ".repeat(10_000)), "text"),
        (
            format!("<img src=\"data:image/png;base64,{}\" alt=text>", "a/ b".repeat(10_000)),
            "text\n",
        ),
        ("<script>".repeat(5_000), ""),
        ("<".repeat(20_000) + "text", ""),
        ("</".repeat(20_000) + "text", ""),
    ];
    for (html, expected) in rows {
        let found = convert(&html);
        assert!(found.text.len() <= html.len());
        assert!(expected.is_empty() || found.text == expected, "{:?}", &found.text);
    }
    let spans = convert(&"<b>x</b>".repeat(20_000));
    assert_eq!(spans.text.len(), 20_001);
    let wide = format!(
        "<table><tr><td>{}</td><td>b</td></tr>{}</table>",
        "w".repeat(1900),
        "<tr><td>a</td><td>b</td></tr>".repeat(5_000)
    );
    assert!(convert(&wide).text.len() < wide.len());
}

proptest::proptest! {
    #[test]
    fn anything_is_converted(
        pieces in proptest::collection::vec(proptest::prop_oneof![
            proptest::sample::select(vec![
                "<p>", "</p>", "<table>", "</table>", "<tr>", "</tr>", "<td>", "<th>", "</td>", "<h1>", "</h1>",
                "<h3>", "</h3>", "<pre>", "</pre>", "<ul>", "<li>", "</li>", "</ul>", "<ol start=9>", "<nav>",
                "</nav>", "<script>", "</script>", "<br>", "<title>", "</title>", "<svg/>", "<div>", "</div>",
                "<caption>", "</caption>", "<code>", "```", "\n", "  ", "<!--", "-->", "<textarea>", "&amp;",
            ]).prop_map(str::to_owned),
            "[a-z退ก ]{0,6}",
        ], 0..60)
    ) {
        let html = pieces.concat();
        let found = convert(&html);
        let mut last = 0;
        for heading in &found.outline.headings {
            proptest::prop_assert!(heading.at >= last && found.text.is_char_boundary(heading.at), "{}", html);
            proptest::prop_assert!(found.text[heading.at..].starts_with('#'), "{}", html);
            last = heading.at;
        }
    }
}
