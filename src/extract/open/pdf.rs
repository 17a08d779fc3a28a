//! PDF (ISO 32000): the glyphs of each page, put into lines, columns and paragraphs.

mod layout;

use std::collections::HashSet;

use hayro_interpret::font::GlyphRun;
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, TransformExt as _, interpret_page,
};
use hayro_syntax::{LoadPdfError, Pdf};

use super::{Draft, Task};
use layout::{Glyph, Line};

/// Glyphs of one page; a page with more is a drawing, or a trap.
const MAX_GLYPHS: usize = 400_000;

/// # Errors
/// It is encrypted or broken, or has no text.
pub fn read(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let pdf = Pdf::new(bytes.to_vec()).map_err(|error| match error {
        LoadPdfError::Decryption(_) => "the PDF is encrypted".to_owned(),
        LoadPdfError::Invalid => "the PDF is broken".to_owned(),
    })?;
    let mut draft = Draft::new(task.budget);
    draft.mime_type = Some("application/pdf");
    if let Some(title) = pdf.metadata().title.as_deref() {
        let title = text_string(title);
        if !is_no_title(&title) {
            draft.title(&title);
        }
    }
    let cache = InterpreterCache::new();
    let mut pages: Vec<Vec<Line>> = vec![];
    let (mut images, mut unknown, mut known, mut bytes_so_far) = (0, 0, 0, 0);
    for page in pdf.pages().iter() {
        let turned = page.initial_transform(true).to_kurbo();
        let mut context = Context::new(
            turned,
            Rect::new(0.0, 0.0, 1.0, 1.0),
            &cache,
            pdf.xref(),
            InterpreterSettings::default(),
        );
        let mut collector = Collector::default();
        interpret_page(page, &mut context, &mut collector);
        images += collector.images;
        unknown += collector.unknown;
        known += collector.glyphs.len();
        bytes_so_far += collector.glyphs.iter().map(|glyph| glyph.text.len()).sum::<usize>();
        pages.push(layout::lines(collector.glyphs));
        if bytes_so_far > task.budget {
            break;
        }
    }
    write(&pages, &mut draft);
    if unknown > known {
        draft.note("some fonts of the PDF don't say which letters they show");
    }
    if draft.is_blank() {
        return Err(match (images, unknown) {
            (_, 1..) => "the PDF's fonts don't say which letters they show".into(),
            (1.., 0) => "scanned PDF, no text layer".into(),
            (0, 0) => "the PDF has no text".into(),
        });
    }
    Ok(draft)
}

/// What writers put where a title should be.
fn is_no_title(title: &str) -> bool {
    let title = title.trim().to_lowercase();
    ["", "untitled", "unknown", "anonymous", "title"].contains(&title.as_str())
        || title.starts_with("microsoft word - ")
        || title.ends_with(".doc")
        || title.ends_with(".docx")
        || title.ends_with(".indd")
}

/// A text string (ISO 32000-1, 7.9.2.2): UTF-16 with a mark, UTF-8 with one, else nearly Latin-1.
fn text_string(bytes: &[u8]) -> String {
    if let Some((encoding, bom)) = encoding_rs::Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[bom..]).0.into_owned();
    }
    encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned()
}

/// Writes lines as paragraphs, and those in larger type as headings.
fn write(pages: &[Vec<Line>], draft: &mut Draft) {
    let sizes = layout::Sizes::of(pages.iter().flatten());
    for (number, lines) in (1..).zip(pages) {
        draft.page(number, None);
        for block in layout::blocks(lines, &sizes) {
            match block.level {
                Some(level) => {
                    draft.heading(level, &block.text);
                    if level == 1 {
                        draft.title(&block.text);
                    }
                }
                None => draft.paragraph(&block.text),
            }
        }
        if draft.is_full() {
            return;
        }
    }
}

/// Collects the glyphs of a page instead of drawing them.
#[derive(Default)]
struct Collector {
    glyphs: Vec<Glyph>,
    /// Where which glyph stands, since shadows and bold letters are drawn twice.
    seen: HashSet<(i64, i64, u64)>,
    images: usize,
    /// Glyphs of which no letter is known.
    unknown: usize,
}

impl Device<'_> for Collector {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, '_>, props: DrawProps<'_>, _: &DrawMode) {
        for positioned in run.glyphs() {
            let text = match positioned.as_unicode() {
                Some(BfString::Char(c)) => c.to_string(),
                Some(BfString::String(text)) => text,
                None => {
                    self.unknown += 1;
                    continue;
                }
            };
            let to_page: Affine = props.transform * positioned.transform();
            let at = to_page * Point::ZERO;
            let span = |vector: Vec2| (to_page * vector.to_point() - at).hypot();
            let size = span(Vec2::new(0.0, 1000.0));
            let advance = match &**positioned {
                hayro_interpret::font::Glyph::Outline(glyph) => glyph.advance_width(),
                hayro_interpret::font::Glyph::Type3(glyph) => glyph.advance_width(),
            };
            let width = span(Vec2::new(advance.unwrap_or(500.0).into(), 0.0));
            let is_sane = [at.x, at.y, size, width].iter().all(|n| n.is_finite() && n.abs() < 1e6);
            if !is_sane || size <= 0.0 || self.glyphs.len() >= MAX_GLYPHS {
                continue;
            }
            let place = ((at.x * 2.0).round() as i64, (at.y * 2.0).round() as i64, hash(&text));
            if !text.trim().is_empty() && !self.seen.insert(place) {
                continue;
            }
            // A column of vertical writing is a line, the rightmost the first.
            let (x, y, width) = match run.writing_mode() {
                WritingMode::Vertical => (at.y, -at.x, size),
                WritingMode::Horizontal => (at.x, at.y, width.min(size * 4.0)),
            };
            self.glyphs.push(Glyph { x, y, width, size, text });
        }
    }

    fn draw_image(&mut self, _: Image<'_, '_>, _: ImageDrawProps<'_>) {
        self.images += 1;
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'_>, _: &DrawMode) {}
    fn draw_rect(&mut self, _: &Rect, _: DrawProps<'_>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_clip_rect(&mut self, _: &Rect) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'_>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
