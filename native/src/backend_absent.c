/* SPDX-License-Identifier: MIT
 * backend_absent.c: stands where a backend is not built: says so.
 */
