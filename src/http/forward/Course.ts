/** What has become of a client's request so far at other processes, however often it is forwarded. */
export interface Course {
  /** Processes that have got it and have not answered. */
  silent: number
}

export const newCourse = (): Course => ({ silent: 0 })
