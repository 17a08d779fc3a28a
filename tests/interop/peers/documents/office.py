"""Has LibreOffice write documents in its formats and many languages, and tells what they say.

usage: office.py SOFFICE FOLDER

Flat OpenDocument goes in, and what LibreOffice makes of it is FOLDER/LANGUAGE.FORMAT. FOLDER/expected.json
is as make.py writes it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from make import FONTS, LANGUAGES, cells, font, sentences

NAMESPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in [
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style"),
        ("presentation", "presentation"), ("fo", "xsl-fo-compatible"), ("svg", "svg-compatible"), ("meta", "meta"),
    ]
) + ' xmlns:dc="http://purl.org/dc/elements/1.1/"'

# What chapters of text begin with: a new page.
STYLES = """<office:styles>
<style:style style:name="Heading_20_1" style:display-name="Heading 1" style:family="paragraph"
 style:default-outline-level="1"/>
<style:style style:name="Heading_20_2" style:display-name="Heading 2" style:family="paragraph"
 style:default-outline-level="2"/>
</office:styles><office:automatic-styles>
<style:style style:name="P" style:family="paragraph" style:parent-style-name="Heading_20_2">
<style:paragraph-properties fo:break-before="page"/></style:style></office:automatic-styles>"""


def flat(kind, content, body, styles=""):
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {NAMESPACES} office:version="1.3" '
        f'office:mimetype="application/vnd.oasis.opendocument.{kind}">'
        f"<office:meta><dc:title>{escape(content['title'])}</dc:title></office:meta>{styles}"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document>"
    )


def p(text):
    return f"<text:p>{escape(text)}</text:p>"


def grid(name, rows):
    width = max(map(len, rows))
    made = "".join(
        "<table:table-row>"
        + "".join(f'<table:table-cell office:value-type="string">{p(cell)}</table:table-cell>' for cell in row)
        + "</table:table-row>"
        for row in rows
    )
    columns = f'<table:table-column table:number-columns-repeated="{width}"/>'
    return f'<table:table table:name="{escape(name)}">{columns}{made}</table:table>'


def text(content):
    """A title, chapters that begin pages, a list in a list, a footnote in the middle of a sentence, a table."""
    note = f'<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>{p(content["table"][1][0])}</text:note-body></text:note>'
    body = f'<text:h text:style-name="Heading_20_1" text:outline-level="1">{escape(content["title"])}</text:h>'
    for n, (head, (first, second)) in enumerate(content["chapters"]):
        style = "P" if n else "Heading_20_2"
        body += f'<text:h text:style-name="{style}" text:outline-level="2">{escape(head)}</text:h>'
        if n == 0:
            middle = len(first) // 2
            body += f"<text:p>{escape(first[:middle])}{note}{escape(first[middle:])}</text:p>"
        else:
            body += p(first)
        body += f"<text:list><text:list-item>{p(head)}<text:list><text:list-item>{p(second)}</text:list-item></text:list></text:list-item></text:list>"
    return flat("text", content, body + grid("t", content["table"]), STYLES)


def sheets(content):
    body = grid(content["title"], content["table"])
    body += "".join(grid(head, [[head, "n"]] + [[s, "1"] for s in said]) for head, said in content["chapters"])
    return flat("spreadsheet", content, body)


def slides(content):
    def frame(kind, inner, y):
        return (
            f'<draw:frame presentation:class="{kind}" svg:x="2cm" svg:y="{y}cm" svg:width="20cm" svg:height="4cm">'
            f"<draw:text-box>{inner}</draw:text-box></draw:frame>"
        )

    body = ""
    for n, (head, said) in enumerate(content["chapters"]):
        said = [content["title"]] * (n == 0) + said
        body += f'<draw:page draw:name="{escape(head)}">{frame("title", p(head), 1)}{frame("outline", "".join(map(p, said)), 6)}</draw:page>'
    return flat("presentation", content, body)


def expected(kind, content):
    places = [(n, head, s) for n, (head, said) in enumerate(content["chapters"], 1) for s in said]
    if kind in ("odt", "docx", "rtf"):
        # RTF's headings are paragraphs that look like headings.
        under = [[s, None, None if kind == "rtf" else head] for _, head, s in places]
        return sentences(content) + cells(content), under
    if kind in ("ods", "xlsx", "xls"):
        return sentences(content) + cells(content), [[s, n + 1, head] for n, head, s in places]
    if kind in ("odp", "pptx"):
        return sentences(content), [[s, n, head] for n, head, s in places]
    # In a PDF the footnote's mark stands within its sentence.
    return [s for s in sentences(content) if s != places[0][2]] + cells(content), [[s, n, None] for n, _, s in places[1:]]


def has_font(content, environment):
    """Whether a font of the system or of ours has all letters, which only a page that is drawn needs."""
    text = "".join(sentences(content) + cells(content))
    codes = " ".join(sorted({f"{ord(c):x}" for c in text if c.isalpha() and not c.isascii()}))
    found = subprocess.run(["fc-list", f":charset={codes}"], env=environment, capture_output=True, check=True)
    return bool(found.stdout.strip())


def main(soffice, folder):
    made = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        fonts = "".join(f"<dir>{font(name).parent}</dir>" for name in FONTS)
        system = '<include ignore_missing="yes">/etc/fonts/fonts.conf</include>'
        (scratch / "fonts.conf").write_text(f"<fontconfig>{system}{fonts}</fontconfig>")
        environment = os.environ | {"FONTCONFIG_FILE": str(scratch / "fonts.conf"), "HOME": str(scratch)}
        for suffix, write, kinds in [
            ("fodt", text, ["odt", "docx", "rtf", "pdf"]),
            ("fods", sheets, ["ods", "xlsx", "xls"]),
            ("fodp", slides, ["odp", "pptx"]),
        ]:
            sources = []
            for language, content in LANGUAGES.items():
                sources.append(scratch / f"{language}.{suffix}")
                sources[-1].write_text(write(content), "utf-8")
            for kind in kinds:
                command = [soffice, f"-env:UserInstallation={(scratch / 'profile').as_uri()}", "--headless"]
                command += ["--convert-to", kind, "--outdir", str(folder), *map(str, sources)]
                subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
                for language, content in LANGUAGES.items():
                    if kind == "pdf" and not has_font(content, environment):
                        print(f"{language}.pdf: no font has its letters")
                        continue
                    words, places = expected(kind, content)
                    file = f"{language}.{kind}"
                    assert (folder / file).exists(), f"LibreOffice made no {file}"
                    made.append({"file": file, "format": kind, "language": language, "words": words, "places": places})
    (folder / "expected.json").write_text(json.dumps(made, ensure_ascii=False, indent=1))


main(sys.argv[1], Path(sys.argv[2]))
