// The times above the log, over which a range is drawn.

/** Draws a range while the pointer is down; then the log shows that range. */
function drawRange(times, { clientX: begun, pointerId }) {
  const { left, width } = times.getBoundingClientRect()
  const [first, last] = [Number(times.dataset.first), Number(times.dataset.last)]
  const drawn = times.appendChild(document.createElement('div'))
  drawn.className = 'drawn'
  times.setPointerCapture(pointerId)
  const placesOf = ({ clientX }) => {
    const places = [begun, clientX].map((x) => Math.min(1, Math.max(0, (x - left) / width)))
    return places.toSorted((a, b) => a - b)
  }
  times.onpointermove = (event) => {
    const [from, to] = placesOf(event)
    drawn.style.insetInline = `${from * 100}% ${100 - to * 100}%`
  }
  const end = () => {
    drawn.remove()
    times.onpointermove = times.onpointerup = times.onpointercancel = null
  }
  times.onpointercancel = end
  times.onpointerup = (event) => {
    end()
    const [from, to] = placesOf(event)
    // A click draws nothing.
    if ((to - from) * width <= 4) return
    filterTimes([from, to].map((at) => first + at * (last - first)))
  }
}

/** Filters by a range of time, in place of the one that was chosen. */
function filterTimes(range) {
  // The last millisecond counts.
  const [since, until] = range.map((at, n) => new Date(Math.floor(at) + n).toISOString())
  const { form } = document.getElementById('filter-q')
  form.elements.when.value = ''
  const others = form.elements.q.value.replaceAll(/(^|\s)(since|until):\S*/g, '').trim()
  form.elements.q.value = `${others} since:${since} until:${until}`.trim()
  form.requestSubmit()
}

document.addEventListener('pointerdown', (event) => {
  const times = event.target.closest('#log-times')
  if (times === null || event.button !== 0) return
  event.preventDefault()
  drawRange(times, event)
})
