//! The tools over the overlay, as the door gives it to them.
