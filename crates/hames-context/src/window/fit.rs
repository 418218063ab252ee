//! The last resorts: what makes a request fit whatever it holds. No model is asked.

use super::Window;
use super::shape::Shape;

impl Window {
    /// The mildest shape that fits and is smaller than what there is: stubs for all results, then later and later
    /// beginnings, at last nothing but document, pins and the last message.
    pub(crate) fn smaller(&self, fill: u64) -> Option<Shape> {
        let fits = |shape: &Shape| {
            let size = self.size(shape);
            size <= self.limits.hard && size < fill
        };
        let all = self.entries.len();
        for capabilities in [false, true] {
            let masked = Shape { mask_below: all, capabilities, ..Shape::default() };
            if fits(&masked) {
                return Some(masked);
            }
        }
        let pins = self.limits.pins.min(self.limits.room / 6);
        let mut cut = self.view.first;
        while cut < all {
            cut = self.step_border(cut + 1);
            for mask_below in [0, all] {
                let shape = Shape { mask_below, capabilities: true, ..self.shape_at(cut) };
                if fits(&shape) {
                    return Some(shape);
                }
            }
        }
        let last = Shape { mask_below: all, capabilities: true, pins: Some(pins), ..self.shape_at(all) };
        fits(&last).then_some(last)
    }
}
