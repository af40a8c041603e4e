// What only the page itself can measure. It runs inside the browser, before the page's own script.

const FOCUSABLE =
  'a[href], button:not(:disabled), input:not([type="hidden"]), select, summary, [tabindex="0"]'

/** Elements that had the focus. A mark in the page would go when htmx renews a part of it. */
const visited = new Set()

/** A short name of an element, for messages. */
function nameOf(element) {
  const { localName, id, className } = element
  const text = element.textContent.trim().replace(/\s+/g, ' ').slice(0, 30)
  return `${localName}${id && `#${id}`}${className && `.${className}`} "${text}"`
}

const WORDS = /[\p{L}\p{N}_]+/gu
/** Names that senders and people chose may be longer than any line. */
const MAX_WORD = 20
const OWN_WORDS = 'thead th, dt, label, legend, button, summary, nav, .badge, .count, time'

/** Words beside a link. */
const PROSE = /\p{L}{2}/u

/** The text of an element's parent without that of the parent's links and other elements. */
function textAround(element) {
  const own = [...element.parentElement.childNodes].filter(({ nodeType }) => nodeType === 3)
  return own.map(({ data }) => data).join(' ')
}

function isShown(element) {
  if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return false
  const { width, height } = element.getBoundingClientRect()
  return width > 1 && height > 1
}

/** Red, green, blue and alpha, of what getComputedStyle gives. */
function parse(color) {
  const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number)
  if (!/^rgba?\(/.test(color)) throw new Error(`a colour that is no rgb(): ${color}`)
  return [r, g, b, a]
}

function over([r, g, b, a], below) {
  const mix = (value, at) => value * a + below[at] * (1 - a)
  return [mix(r, 0), mix(g, 1), mix(b, 2), 1]
}

/** The colour that lies behind an element's text. */
function groundOf(element) {
  const layers = []
  for (let at = element; at !== null; at = at.parentElement) {
    const color = parse(getComputedStyle(at).backgroundColor)
    if (color[3] > 0) layers.push(color)
    if (color[3] === 1) break
  }
  return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1])
}

function luminance(color) {
  const [r, g, b] = color.slice(0, 3).map((value) => {
    const part = value / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function ratio(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (high + 0.05) / (low + 0.05)
}

function contrastOf(element, ground, pseudo) {
  return ratio(over(parse(getComputedStyle(element, pseudo).color), ground), ground)
}

function textElements() {
  const found = new Set()
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const { parentElement, data } = walker.currentNode
    if (data.trim() !== '' && isShown(parentElement)) found.add(parentElement)
  }
  return [...found].filter((element) => element.closest(':disabled, svg, option') === null)
}

globalThis.inPage = {
  openDetails() {
    for (const details of document.querySelectorAll('details')) details.open = true
  },

  /** Elements that stick out of the page on its right, when the page scrolls sideways. */
  tooWide() {
    const { scrollWidth, clientWidth } = document.scrollingElement
    if (scrollWidth <= clientWidth) return []
    const wide = [...document.body.querySelectorAll('*')].filter(
      (element) => element.getBoundingClientRect().right > clientWidth,
    )
    return [`${scrollWidth} of ${clientWidth} px`, ...wide.slice(0, 5).map(nameOf)]
  },

  /** Texts, typed texts and place-holders that are hard to read. */
  lowContrast(least) {
    const fields = [...document.querySelectorAll('input, select')].filter(isShown)
    const measured = [
      ...[...textElements(), ...fields].map((element) => [element, undefined]),
      ...fields.filter((field) => field.placeholder).map((field) => [field, '::placeholder']),
    ].map(([element, pseudo]) => [element, contrastOf(element, groundOf(element), pseudo)])
    if (measured.length < 5) throw new Error('no text was found on the page')
    return measured
      .filter(([, contrast]) => contrast < least)
      .map(([element, contrast]) => `${nameOf(element)} has ${contrast.toFixed(2)}`)
  },

  /** Our own words that are broken in the middle, and headings of columns that are cut. */
  torn() {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const faults = []
    while (walker.nextNode()) {
      const { parentElement, data } = walker.currentNode
      if (!isShown(parentElement) || parentElement.closest(OWN_WORDS) === null) continue
      for (const { 0: word, index } of data.matchAll(WORDS)) {
        if (word.length > MAX_WORD) continue
        const range = document.createRange()
        range.setStart(walker.currentNode, index)
        range.setEnd(walker.currentNode, index + word.length)
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
        if (lines.size > 1) faults.push(`${word} of ${nameOf(parentElement)}`)
      }
    }
    const heads = [...document.querySelectorAll('th')].filter(isShown)
    const cut = heads.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
    return [...faults, ...cut.map((head) => `cut: ${nameOf(head)}`)]
  },

  /** How high elements are, in whole pixels, without repetition. */
  heights(selector) {
    const shown = [...document.querySelectorAll(selector)].filter(isShown)
    return [...new Set(shown.map((element) => Math.round(element.getBoundingClientRect().height)))]
  },

  /** How many lines elements stand in. */
  lines(selector) {
    const shown = [...document.querySelectorAll(selector)].filter(isShown)
    const middles = shown.map((element) => {
      const { top, bottom } = element.getBoundingClientRect()
      return Math.round((top + bottom) / 2)
    })
    return new Set(middles).size
  },

  /** Addresses of the page's styles and scripts. */
  assets() {
    const files = performance.getEntriesByType('resource').map(({ name }) => name)
    return files.filter((name) => /\.(css|js)$/.test(name))
  },

  /** Where elements stand, as one text. */
  placesOf(selector) {
    const places = [...document.querySelectorAll(selector)].map((element) => {
      const { x, y, width, height } = element.getBoundingClientRect()
      return [x, y, width, height].map((value) => value.toFixed(1)).join(' ')
    })
    return places.join('; ')
  },

  /** What is lower than a finger needs, but links within a sentence. */
  smallTargets(least) {
    const inText = (element) => element.localName === 'a' && PROSE.test(textAround(element))
    return (
      [...document.querySelectorAll(FOCUSABLE)]
        // The lines of a tree of JSON are those of a text.
        .filter((element) => isShown(element) && !element.matches('pre, .skip, .json *'))
        .filter((element) => !inText(element))
        .map((element) => [element, element.closest('label.choice') ?? element])
        .map(([element, target]) => [element, target.getBoundingClientRect().height])
        .filter(([, height]) => height < least)
        .map(([element, height]) => `${nameOf(element)} is ${height.toFixed(0)} px high`)
    )
  },

  /** Notes the focused element; gives what is wrong with how its focus shows, or null at the end. */
  visit() {
    const element = document.activeElement
    if (element === null || element === document.body || visited.has(element)) return null
    visited.add(element)
    // The ring of the link of a row is around the row.
    const ringed = element.matches('.row-link') ? '::after' : undefined
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element, ringed)
    if (outlineStyle === 'none' || Number.parseFloat(outlineWidth) < 2) {
      return `${nameOf(element)} shows no focus`
    }
    const ground = groundOf(element.parentElement)
    const contrast = ratio(over(parse(outlineColor), ground), ground)
    if (contrast < 3) return `${nameOf(element)} has an outline of contrast ${contrast.toFixed(2)}`
    return isShown(element) ? '' : `${nameOf(element)} has the focus and is not to be seen`
  },

  /** What a mouse can use and Tab did not reach. */
  unvisited() {
    const missed = [...document.querySelectorAll(FOCUSABLE)].filter(
      // Of a group of radio buttons only one is in the order of Tab.
      (element) => isShown(element) && !visited.has(element) && element.type !== 'radio',
    )
    return missed.map(nameOf)
  },

  /** What is wrong with the page's outline for those who hear it. */
  structure() {
    const count = (selector) => document.querySelectorAll(selector).length
    const faults = []
    for (const selector of [
      'h1',
      'main',
      'body > header',
      'body > footer',
      'nav[aria-label=Main]',
    ]) {
      if (count(selector) !== 1) faults.push(`${count(selector)} × ${selector}, expected 1`)
    }
    const levels = [...document.querySelectorAll('h1, h2, h3, h4')].map((h) =>
      Number(h.localName[1]),
    )
    levels.forEach((level, at) => {
      if (level > (levels[at - 1] ?? 0) + 1) faults.push(`h${level} after h${levels[at - 1] ?? 0}`)
    })
    const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id)
    const twice = ids.filter((id, at) => ids.indexOf(id) !== at)
    if (twice.length > 0) faults.push(`ids that occur twice: ${twice.join(', ')}`)
    for (const name of ['for', 'aria-labelledby', 'aria-describedby']) {
      for (const element of document.querySelectorAll(`[${name}]`)) {
        const missing = element
          .getAttribute(name)
          .trim()
          .split(/\s+/)
          .filter((id) => !ids.includes(id))
        if (missing.length > 0)
          faults.push(`${name}=${missing} of ${nameOf(element)} names nothing`)
      }
    }
    for (const field of document.querySelectorAll('input:not([type=hidden]), select, textarea')) {
      if (field.labels.length === 0) faults.push(`${nameOf(field)} has no label`)
    }
    if (document.documentElement.lang !== 'en') faults.push('no language')
    if (!/^\S.* · Gatehouse$/.test(document.title)) faults.push(`title '${document.title}'`)
    return faults
  },
}
