/* SPDX-License-Identifier: MIT
 * status.c: a sentence for each status. Owns nothing; thread-safe.
 */
#include "internal.h"

const char *tlm_status_text(tlm_status status)
{
    switch (status) {
    case TLM_OK:
        return "no error";
    case TLM_NO_MEMORY:
        return "no memory for the recorder's own bookkeeping";
    case TLM_IO:
        return "the operating system refused";
    case TLM_NO_SPACE:
        return "no space on the disk or within the size limit";
    case TLM_EXISTS:
        return "the file exists and was not to be overwritten";
    case TLM_BAD_ARGUMENT:
        return "an argument is out of its range";
    case TLM_ALREADY_RUNNING:
        return "it is running already";
    case TLM_NOT_RUNNING:
        return "no recording is running";
    case TLM_UNSUPPORTED:
        return "not supported by this platform, Python or NumPy";
    case TLM_BAD_FORMAT:
        return "the bytes are not a valid block";
    }
    return "unknown status";
}
