export const SERVICES = ['hooks', 'links', 'ops'] as const
export type ServiceName = (typeof SERVICES)[number]
