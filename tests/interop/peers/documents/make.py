"""Writes documents in many formats and languages with other people's libraries, and what they say.

usage: make.py FOLDER [TIMES]

Each document says everything TIMES times. FOLDER/expected.json has for each file its format, its language, words that must be found in it, and
places: a word, the page (slide, sheet) it stands on, and a heading that must be above it.
"""

import email.message
import email.policy
import gzip
import io
import json
import mailbox
import sys
import tarfile
import wave
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import docx
import fpdf
import odfdo
import openpyxl
import pptx
from ebooklib import epub
from mutagen.id3 import COMM, ID3, TIT2
from mutagen.wave import WAVE
from PIL import Image, PngImagePlugin
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen import canvas

# A title, two chapters of a heading and sentences, and a table: header and rows.
LANGUAGES = {
    "zh": {
        "title": "退款政策手册",
        "chapters": [
            ("申请期限", ["退款申请须在购买后三十天内提交。", "商品应保持完好，运费由买家承担。"]),
            ("例外情况", ["定制商品不接受退货。", "节假日顺延至下一个工作日。"]),
        ],
        "table": [["地区", "天数"], ["上海", "十五"], ["乌鲁木齐", "四十"]],
        "cid": "STSong-Light",
        "charset": "gb18030",
    },
    "zh-Hant": {
        "title": "退款政策手冊",
        "chapters": [
            ("申請期限", ["退款申請須於購買後三十天內提交。", "商品應保持完好，運費由買家承擔。"]),
            ("例外情況", ["客製商品不接受退貨。", "例假日順延至下一個工作日。"]),
        ],
        "table": [["地區", "天數"], ["臺北", "十五"], ["澎湖", "四十"]],
        "cid": "MSung-Light",
        "charset": "big5",
    },
    "ja": {
        "title": "返金ポリシー手引き",
        "chapters": [
            ("申請期限", ["返金の申請は購入後三十日以内に行ってください。", "送料はお客様の負担となります。"]),
            ("例外", ["特注品は返品できません。", "祝日の場合は翌営業日になります。"]),
        ],
        "table": [["地域", "日数"], ["北海道", "十五"], ["沖縄", "四十"]],
        "cid": "HeiseiMin-W3",
        "charset": "shift_jis",
    },
    "ko": {
        "title": "환불 정책 안내서",
        "chapters": [
            ("신청 기한", ["환불 신청은 구매 후 삼십일 이내에 해야 합니다.", "배송비는 구매자가 부담합니다."]),
            ("예외", ["주문 제작 상품은 반품할 수 없습니다.", "공휴일에는 다음 영업일로 연기됩니다."]),
        ],
        "table": [["지역", "일수"], ["서울", "십오"], ["제주도", "사십"]],
        "cid": "HYSMyeongJo-Medium",
        "charset": "euc-kr",
    },
    "th": {
        "title": "คู่มือการคืนเงิน",
        "chapters": [
            ("กำหนดเวลา", ["ต้องยื่นคำขอภายในสามสิบวันหลังการซื้อ", "ผู้ซื้อเป็นผู้จ่ายค่าขนส่ง"]),
            ("ข้อยกเว้น", ["สินค้าสั่งทำไม่รับคืน", "วันหยุดจะเลื่อนไปวันทำการถัดไป"]),
        ],
        "table": [["ภาค", "จำนวนวัน"], ["เชียงใหม่", "สิบห้า"], ["ภูเก็ต", "สี่สิบ"]],
        "font": "thai",
        "charset": "tis-620",
    },
    "ru": {
        "title": "Правила возврата денег",
        "chapters": [
            ("Сроки подачи", ["Заявление подаётся в течение тридцати дней после покупки.", "Доставку оплачивает покупатель."]),
            ("Исключения", ["Товары на заказ возврату не подлежат.", "В праздники срок переносится на рабочий день."]),
        ],
        "table": [["Регион", "Дней"], ["Москва", "пятнадцать"], ["Владивосток", "сорок"]],
        "font": "sans",
        "charset": "koi8-r",
    },
    "ar": {
        "title": "دليل استرداد الأموال",
        "chapters": [
            ("مهلة الطلب", ["يقدم الطلب خلال ثلاثين يوما بعد الشراء", "يتحمل المشتري تكلفة الشحن"]),
            ("استثناءات", ["لا تقبل إعادة المنتجات المصنوعة حسب الطلب", "تؤجل العطلة إلى يوم العمل التالي"]),
        ],
        "table": [["المنطقة", "الأيام"], ["القاهرة", "خمسة عشر"], ["أسوان", "أربعون"]],
        "font": "arabic",
        "charset": "windows-1256",
    },
}

FONTS = {
    "sans": "fontpkg_noto_sans/files/NotoSans[wdth,wght].ttf",
    "thai": "fontpkg_noto_sans_thai/files/NotoSansThai[wdth,wght].ttf",
    "arabic": "fontpkg_noto_sans_arabic/files/NotoSansArabic[wdth,wght].ttf",
}


def font(name):
    return next(Path(path) / FONTS[name] for path in sys.path if (Path(path) / FONTS[name]).exists())


def sentences(content):
    return [content["title"]] + [s for head, body in content["chapters"] for s in [head, *body]]


def cells(content):
    return [cell for row in content["table"] for cell in row]


def whole(content):
    """Words and places of a document without pages."""
    places = [[s, None, head] for head, body in content["chapters"] for s in body]
    return sentences(content) + cells(content), places


def paged(content):
    """The same where each chapter is a page, the title on the first."""
    places = [[s, n, None] for n, (_, body) in enumerate(content["chapters"], 1) for s in body]
    return sentences(content), places


def pdf(path, language, content):
    if "cid" in content:
        # The font isn't in the file, and its letters are known by a CMap of the standard.
        pdfmetrics.registerFont(UnicodeCIDFont(content["cid"]))
        page = canvas.Canvas(str(path), pagesize=A4)
        for n, (head, body) in enumerate(content["chapters"]):
            y = 780
            if n == 0:
                page.setFont(content["cid"], 20)
                page.drawString(60, y, content["title"])
                y -= 50
            page.setFont(content["cid"], 16)
            page.drawString(60, y, head)
            page.setFont(content["cid"], 11)
            for sentence in body:
                y -= 30
                page.drawString(60, y, sentence)
            page.showPage()
        page.save()
    else:
        page = fpdf.FPDF()
        page.add_font("f", fname=font(content["font"]))
        page.set_text_shaping(True)
        for n, (head, body) in enumerate(content["chapters"]):
            page.add_page()
            for size, line in [(20, content["title"])] * (n == 0) + [(16, head)] + [(11, s) for s in body]:
                page.set_font("f", size=size)
                page.cell(h=14, text=line, new_x="LMARGIN", new_y="NEXT")
        page.output(str(path))
    return paged(content)


def columns(path, language, content):
    """Two columns: the left one is read to its end before the right one."""
    pdfmetrics.registerFont(UnicodeCIDFont(content["cid"]))
    page = canvas.Canvas(str(path), pagesize=A4)
    page.setFont(content["cid"], 10)
    left, right = (body[0] * 6 for _, body in content["chapters"])
    for row in range(8):
        page.drawString(60, 700 - 15 * row, left[row * 18 : row * 18 + 18])
        page.drawString(320, 700 - 15 * row, right[row * 18 : row * 18 + 18])
    page.save()
    return [left[:126], right[:126]], []


def word(path, language, content):
    document = docx.Document()
    document.core_properties.title = content["title"]
    document.add_heading(content["title"], 0)
    for head, body in content["chapters"]:
        document.add_heading(head, 1)
        document.add_paragraph(body[0])
        document.add_paragraph(body[1], style="List Bullet")
    rows = content["table"]
    grid = document.add_table(len(rows), len(rows[0]))
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            grid.cell(r, c).text = cell
    document.save(path)
    return whole(content)


def slides(path, language, content):
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[0])
    first.shapes.title.text = content["title"]
    for head, body in content["chapters"]:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = head
        slide.placeholders[1].text = "\n".join(body)
        slide.notes_slide.notes_text_frame.text = content["table"][1][0]
    deck.save(path)
    places = [[s, n, head] for n, (head, body) in enumerate(content["chapters"], 2) for s in body]
    return sentences(content) + [content["table"][1][0]], places


def sheet(path, language, content):
    book = openpyxl.Workbook()
    book.active.title = content["title"][:31]
    for row in content["table"]:
        book.active.append(row)
    for head, body in content["chapters"]:
        page = book.create_sheet(head)
        page.append([head, "n"])
        for n, sentence in enumerate(body):
            page.append([sentence, n])
    book.save(path)
    places = [[s, n, head] for n, (head, body) in enumerate(content["chapters"], 2) for s in body]
    places += [[cell, 1, content["title"]] for cell in cells(content)]
    return sentences(content) + cells(content), places


def odt(path, language, content):
    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, content["title"]))
    for head, body in content["chapters"]:
        document.body.append(odfdo.Header(2, head))
        document.body.append(odfdo.Paragraph(body[0]))
        document.body.append(odfdo.List([body[1]]))
    document.body.append(grid_of(content["table"], "t"))
    document.save(path)
    return whole(content)


def grid_of(rows, name):
    grid = odfdo.Table(name)
    grid.set_values(rows)
    return grid


def ods(path, language, content):
    document = odfdo.Document("spreadsheet")
    document.body.clear()
    document.body.append(grid_of(content["table"], content["title"]))
    for head, body in content["chapters"]:
        document.body.append(grid_of([[head, "n"]] + [[s, "1"] for s in body], head))
    document.save(path)
    places = [[s, n, head] for n, (head, body) in enumerate(content["chapters"], 2) for s in body]
    return sentences(content) + cells(content), places


def odp(path, language, content):
    document = odfdo.Document("presentation")
    document.body.clear()
    for n, (head, body) in enumerate(content["chapters"]):
        slide = odfdo.DrawPage(f"s{n}", name=head)
        for sentence in [content["title"]] * (n == 0) + [head, *body]:
            slide.append(odfdo.Frame.text_frame(sentence, size=("10cm", "2cm"), position=("1cm", "1cm")))
        document.body.append(slide)
    document.save(path)
    return paged(content)


def html_of(head, body):
    return f"<h1>{head}</h1>" + "".join(f"<p>{s}</p>" for s in body)


def book(path, language, content):
    book = epub.EpubBook()
    book.set_title(content["title"])
    book.set_language(language)
    chapters = []
    for n, (head, body) in enumerate(content["chapters"]):
        chapter = epub.EpubHtml(title=head, file_name=f"c{n}.xhtml", lang=language)
        chapter.content = html_of(head, body)
        book.add_item(chapter)
        chapters.append(chapter)
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    book.spine = ["nav", *chapters]
    epub.write_epub(str(path), book)
    return sentences(content)[1:], whole(content)[1]


def message(content, charset):
    mail = email.message.EmailMessage(policy=email.policy.SMTP)
    mail["Subject"] = content["title"]
    mail["From"] = "a@x.example"
    lines = [s for head, body in content["chapters"] for s in [head, *body]]
    mail.set_content("\n".join(lines), charset=charset, cte="base64")
    rows = "\n".join(",".join(row) for row in content["table"])
    mail.add_attachment(rows.encode(), maintype="text", subtype="csv", filename="table.csv")
    return mail


def eml(path, language, content):
    path.write_bytes(bytes(message(content, content["charset"])))
    return sentences(content) + cells(content), []


def mbox(path, language, content):
    box = mailbox.mbox(str(path))
    box.add(message(content, "utf-8"))
    box.add(message(content, "utf-8"))
    box.close()
    return sentences(content), []


def rtf(path, language, content):
    def escaped(line):
        # As Word writes what its own charset lacks: UTF-16 in signed decimals.
        units = line.encode("utf-16-le")
        numbers = [int.from_bytes(units[n : n + 2], "little", signed=True) for n in range(0, len(units), 2)]
        return "".join(f"\\u{n}?" for n in numbers)

    lines = "".join(f"{{\\pard {escaped(s)}\\par}}\n" for s in sentences(content))
    rows = "".join(
        "\\trowd\\pard\\intbl " + "".join(f"{escaped(c)}\\cell " for c in row) + "\\row\n"
        for row in content["table"]
    )
    path.write_text("{\\rtf1\\ansi\\ansicpg1252\\uc1\n" + lines + rows + "}", "ascii")
    return sentences(content) + cells(content), []


def notebook(path, language, content):
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    for head, body in content["chapters"]:
        book["cells"].append({"cell_type": "markdown", "metadata": {}, "source": [f"# {head}\n", body[0]]})
        code = f"print('{body[1]}')"
        book["cells"].append({"cell_type": "code", "metadata": {}, "source": code, "outputs": []})
    path.write_text(json.dumps(book))
    return sentences(content)[1:], whole(content)[1]


def srt(path, language, content):
    cues = [f"{n}\n00:0{n}:00,000 --> 00:0{n}:05,000\n{s}\n" for n, s in enumerate(sentences(content), 1)]
    path.write_bytes("\n".join(cues).encode(content["charset"]))
    return sentences(content), []


def page(path, language, content):
    body = "".join(html_of(head, body) for head, body in content["chapters"])
    rows = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in content["table"])
    markup = f"<html><head><meta charset='{content['charset']}'><title>{content['title']}</title></head>"
    markup += f"<body><nav>x</nav>{body}<table>{rows}</table></body></html>"
    path.write_bytes(markup.encode(content["charset"]))
    return sentences(content)[1:] + cells(content), whole(content)[1]


def csv(path, language, content):
    path.write_bytes("\n".join(",".join(row) for row in content["table"] * 3).encode("utf-8-sig"))
    return cells(content), []


def plain(path, language, content):
    path.write_bytes("\n".join(sentences(content) * 2).encode(content["charset"]))
    return sentences(content), []


def utf16(path, language, content):
    path.write_bytes("\r\n".join(sentences(content) * 2).encode("utf-16-be"))
    return sentences(content), []


def zipped(path, language, content):
    inner = io.BytesIO()
    document = docx.Document()
    document.add_paragraph(content["chapters"][0][1][0])
    document.save(inner)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/notes.md", f"# {content['title']}\n\n{content['chapters'][1][1][0]}\n")
        archive.writestr("b.docx", inner.getvalue())
    return [content["title"], content["chapters"][0][1][0], content["chapters"][1][1][0]], [
        [content["chapters"][0][1][0], None, "b.docx"]
    ]


def tarred(path, language, content):
    with tarfile.open(path, "w:gz") as archive:
        for n, (head, body) in enumerate(content["chapters"]):
            data = f"# {head}\n\n{body[0]}\n".encode()
            entry = tarfile.TarInfo(f"c{n}.md")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return [s for head, body in content["chapters"] for s in [head, body[0]]], []


def packed(path, language, content):
    path.write_bytes(gzip.compress("\n".join(sentences(content)).encode()))
    return sentences(content), []


def png(path, language, content):
    about = PngImagePlugin.PngInfo()
    about.add_itxt("Title", content["title"])
    about.add_itxt("Description", content["chapters"][0][1][0])
    Image.new("RGB", (40, 30)).save(path, pnginfo=about)
    return [content["title"], content["chapters"][0][1][0], "40 × 30"], []


def jpeg(path, language, content):
    picture = Image.new("RGB", (40, 30))
    exif = picture.getexif()
    exif[0x013B] = "Anna Example"
    xmp = (
        "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
        "<rdf:Description xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title><rdf:Alt>"
        f"<rdf:li xml:lang='x-default'>{content['title']}</rdf:li></rdf:Alt></dc:title>"
        "</rdf:Description></rdf:RDF></x:xmpmeta>"
    )
    picture.save(path, exif=exif, xmp=xmp.encode())
    return [content["title"], "Anna Example", "40 × 30"], []


def mp3(path, language, content):
    # A few silent frames of MPEG-1 layer III, 128 kbit/s, after the tags.
    path.write_bytes((b"\xff\xfb\x90\x00" + bytes(413)) * 8)
    tags = ID3()
    tags.add(TIT2(encoding=3, text=content["title"]))
    tags.add(COMM(encoding=1, lang="eng", desc="", text=content["chapters"][0][1][0]))
    tags.save(path)
    return [content["title"], content["chapters"][0][1][0]], []


def wav(path, language, content):
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 1, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(800))
    sound = WAVE(path)
    sound.add_tags()
    sound.tags.add(TIT2(encoding=3, text=content["title"]))
    sound.save()
    return [content["title"]], []


def mkv(path, language, content):
    def of(name, data):
        return name + (len(data) | 0x10000000).to_bytes(4, "big") + data

    # Segment: Info with Title; Tags, Tag, SimpleTag with its name and text; a Cluster.
    tag = of(b"\x45\xa3", b"DESCRIPTION") + of(b"\x44\x87", content["chapters"][0][1][0].encode())
    inner = of(b"\x15\x49\xa9\x66", of(b"\x7b\xa9", content["title"].encode()))
    inner += of(b"\x12\x54\xc3\x67", of(b"\x73\x73", of(b"\x67\xc8", tag))) + of(b"\x1f\x43\xb6\x75", bytes(500))
    path.write_bytes(of(b"\x1a\x45\xdf\xa3", of(b"\x42\x82", b"matroska")) + of(b"\x18\x53\x80\x67", inner))
    return [content["title"], content["chapters"][0][1][0]], []


def avi(path, language, content):
    def of(name, data):
        return name + len(data).to_bytes(4, "little") + data + bytes(len(data) % 2)

    info = of(b"INAM", content["title"].encode() + b"\0")
    path.write_bytes(of(b"RIFF", b"AVI " + of(b"LIST", b"hdrl" + bytes(64)) + of(b"LIST", b"INFO" + info)))
    return [content["title"]], []


def vtt(path, language, content):
    cues = [f"00:0{n}:00.000 --> 00:0{n}:05.000\n<v Anna>{s}\n" for n, s in enumerate(sentences(content), 1)]
    path.write_text("WEBVTT\n\n" + "\n".join(cues), "utf-8")
    return sentences(content) + ["Anna"], []


def tsv(path, language, content):
    path.write_bytes("\n".join("\t".join(row) for row in content["table"] * 3).encode(content["charset"]))
    return cells(content), []


def tree(path, language, content):
    root = ElementTree.Element("manual", title=content["title"])
    for head, body in content["chapters"]:
        chapter = ElementTree.SubElement(root, "chapter")
        ElementTree.SubElement(chapter, "head").text = head
        for sentence in body:
            ElementTree.SubElement(chapter, "p").text = sentence
    ElementTree.ElementTree(root).write(path, encoding="utf-16" if language == "ja" else "utf-8", xml_declaration=True)
    return sentences(content)[1:], []


def drawing(path, language, content):
    lines = "".join(f"<text y='{n}'><tspan>{s}</tspan></text>" for n, s in enumerate(sentences(content)))
    path.write_text(f"<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0'/>{lines}</svg>", "utf-8")
    return sentences(content), []


def data(content):
    chapters = [{"head": head, "body": body} for head, body in content["chapters"]]
    return {"title": content["title"], "chapters": chapters}


def paths(content):
    """Each sentence with the keys above it."""
    return [
        f"chapters[{n}].body[{m}]: {s}" for n, (_, body) in enumerate(content["chapters"]) for m, s in enumerate(body)
    ]


def tidy(path, language, content):
    path.write_text(json.dumps(data(content), indent=2), "ascii")
    return sentences(content) + paths(content), []


def records(path, language, content):
    path.write_text("".join(json.dumps(one) + "\n" for one in data(content)["chapters"] * 2), "ascii")
    return sentences(content)[1:], []


def yaml(path, language, content):
    lines = [f"title: {content['title']}", "chapters:"]
    for head, body in content["chapters"]:
        lines += [f"- head: '{head}'", "  body:", *(f'  - "{s}"' for s in body)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return sentences(content) + paths(content), []


def toml(path, language, content):
    lines = [f'title = "{content["title"]}"']
    for head, body in content["chapters"]:
        lines += ["", "[[chapters]]", f'head = "{head}"', f"body = {json.dumps(body)}"]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return sentences(content), []


FORMATS = {
    "pdf": pdf,
    "docx": word,
    "pptx": slides,
    "xlsx": sheet,
    "odt": odt,
    "ods": ods,
    "odp": odp,
    "epub": book,
    "eml": eml,
    "mbox": mbox,
    "rtf": rtf,
    "ipynb": notebook,
    "srt": srt,
    "html": page,
    "csv": csv,
    "txt": plain,
    "utf16.txt": utf16,
    "zip": zipped,
    "tar.gz": tarred,
    "txt.gz": packed,
    "png": png,
    "jpg": jpeg,
    "mp3": mp3,
    "wav": wav,
    "mkv": mkv,
    "avi": avi,
    "vtt": vtt,
    "tsv": tsv,
    "xml": tree,
    "svg": drawing,
    "json": tidy,
    "jsonl": records,
    "yaml": yaml,
    "toml": toml,
}


def main(folder, times=1):
    folder.mkdir(parents=True, exist_ok=True)
    expected = []

    def add(kind, language, content, make):
        path = folder / f"{language}.{kind}"
        words, places = make(path, language, content)
        expected.append(
            {"file": path.name, "format": kind, "language": language, "words": words, "places": places}
        )

    for language, content in LANGUAGES.items():
        content["chapters"] = [(head, body * times) for head, body in content["chapters"]]
        content["table"] = content["table"][:1] + content["table"][1:] * times
        for kind, make in FORMATS.items():
            add(kind, language, content, make)
        if language in ("zh", "ja"):
            add("columns.pdf", language, content, columns)
    # A picture of a page, as a scanner makes it.
    Image.new("L", (800, 1100), 250).save(folder / "scan.pdf")
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
