/** Icons of 16 × 16 units, drawn with lines. Decoration only: the text beside them says the same. */

const paths = {
  overview: 'M2.5 13.5v-5M6.2 13.5v-9M9.8 13.5v-7M13.5 13.5v-11',
  live: 'M1.5 8h3l2-5 3 10 2-5h3',
  usage:
    'M8 1.8v12.4M11 4.3C10.5 3.4 9.4 3 8 3 6.3 3 5 3.8 5 5.3c0 3.4 6.2 1.8 6.2 5.2C11.2 12.1 9.8 13 8 13c-1.6 0-2.8-.6-3.3-1.7',
  batches: 'M8 1.8 14.2 5 8 8.2 1.8 5zM1.8 8 8 11.2 14.2 8M1.8 11 8 14.2 14.2 11',
  keys: 'M10.2 9.3a3.7 3.7 0 1 0-3.5-3.5L2 10.5V14h3.5v-2h2v-2h1.6zM11 5h.01',
  limits: 'M2.3 12a6.5 6.5 0 1 1 11.4 0M8 9l2.8-3.2M8 9h.01',
  models: 'M8 1.5 13.8 4.8v6.4L8 14.5 2.2 11.2V4.8zM2.2 4.8 8 8l5.8-3.2M8 8v6.5',
  audit: 'M4 1.8h5.5L12.5 5v9.2H4zM9.3 1.8V5.2h3.2M6.3 8.2h4M6.3 11h4',
  playground: 'M2 3h12v8H7.5L4.5 13.8V11H2z',
  'my-key': 'M8 8a2.8 2.8 0 1 0 0-5.6A2.8 2.8 0 0 0 8 8zM2.5 14c.5-2.6 2.6-4 5.5-4s5 1.4 5.5 4',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  plus: 'M8 2.5v11M2.5 8h11',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'M2.8 8.5l3.5 3.5 7-8',
  warning: 'M8 2 14.5 13.5h-13zM8 6.5v3M8 11.5h.01',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 14 14',
  next: 'M6 3l5 5-5 5',
  previous: 'M10 3 5 8l5 5',
  download: 'M8 2v8.5M4.5 7.5 8 11l3.5-3.5M2.5 13.8h11',
  refresh: 'M13.3 6.5A5.6 5.6 0 1 0 13.6 9M13.5 2.5v4h-4',
  'log-out': 'M9.5 2.5h-7v11h7M6.5 8H14M11 5l3 3-3 3',
  database:
    'M2.5 4c0-1.2 2.4-2 5.5-2s5.5.8 5.5 2-2.4 2-5.5 2-5.5-.8-5.5-2zM2.5 4v8c0 1.2 2.4 2 5.5 2s5.5-.8 5.5-2V4M2.5 8c0 1.2 2.4 2 5.5 2s5.5-.8 5.5-2',
  stop: 'M3.5 3.5h9v9h-9z',
  play: 'M4 2.5 13 8l-9 5.5z',
  trash: 'M2.5 4h11M6 4V2.2h4V4M4 4l.7 9.8h6.6L12 4M6.7 6.8v4.4M9.3 6.8v4.4',
} as const

export type IconName = keyof typeof paths

export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d={paths[name]} />
  </svg>
)
