/* SPDX-License-Identifier: Apache-2.0
 * Looks into the list of results in err.h. A number that is not in the list
 * can only come from a stored row that was damaged: it reads as an internal
 * error. Pure; any thread. */
#include "base/err.h"

int err_http_status(enum err err)
{
    switch (err) {
#define ERR_STATUS(name, number, status, code, text)                                                         \
    case ERR_##name:                                                                                         \
        return status;
        ERR_MAP(ERR_STATUS)
#undef ERR_STATUS
    }
    return err_http_status(ERR_INTERNAL);
}

const char *err_code(enum err err)
{
    switch (err) {
#define ERR_CODE(name, number, status, code, text)                                                           \
    case ERR_##name:                                                                                         \
        return code;
        ERR_MAP(ERR_CODE)
#undef ERR_CODE
    }
    return err_code(ERR_INTERNAL);
}

const char *err_text(enum err err)
{
    switch (err) {
#define ERR_TEXT(name, number, status, code, text)                                                           \
    case ERR_##name:                                                                                         \
        return text;
        ERR_MAP(ERR_TEXT)
#undef ERR_TEXT
    }
    return err_text(ERR_INTERNAL);
}
