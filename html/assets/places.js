// Back shows a page as it was left: with the rows that "Show more" had added, and where it was
// scrolled to. Both are kept with the page's entry of the history. htmx loads the page again for a
// filter that is taken back, and browsers restore no place then.

/** htmx would replace a state that it does not know as its own. */
function keep(state) {
  history.replaceState({ ...history.state, htmx: true, ...state }, '')
}

/** How many times "Show more" was used. */
function countMore({ detail: { ctx } }) {
  if (ctx.response.status >= 400 || ctx.sourceElement.closest('.more') === null) return
  keep({ more: (history.state?.more ?? 0) + 1, y: scrollY })
}

/** The entry is another one as soon as somebody goes back, before its page is there. */
let isRestoring = false

function keepPlace() {
  if (!isRestoring) keep({ y: scrollY })
}

async function restorePlace() {
  const [visit] = performance.getEntriesByType('navigation')
  const { more = 0, y } = history.state ?? {}
  if (visit?.type === 'navigate') return
  if (more > 0) keep({ more: 0 })
  for (let page = 0; page < more; page++) {
    const link = document.querySelector('.more a[hx-get]')
    if (link === null) break
    const added = new Promise((resolve) => {
      document.addEventListener('htmx:after:swap', resolve, { once: true })
    })
    link.click()
    await added
  }
  if (y !== undefined) scrollTo(0, y)
}

document.addEventListener('htmx:after:request', countMore)
// Before htmx hears of it: it waits for a timer first, and a scroll may end meanwhile.
addEventListener('popstate', () => (isRestoring = true))
// A step within the page loads nothing.
addEventListener('hashchange', () => (isRestoring = false))
document.addEventListener('scrollend', keepPlace)
// htmx begins in a timer, too: that one is due first.
addEventListener('load', () => setTimeout(restorePlace))
