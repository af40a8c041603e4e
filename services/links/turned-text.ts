/**
 * Characters that show the text behind them in another order than it has, up to their end or the end of
 * the line. Marks of one direction (U+200E, U+200F, U+061C) turn nothing else: texts of right-to-left
 * scripts need them.
 */
export const TURNS_TEXT = /[\u202a-\u202e\u2066-\u2069]/
