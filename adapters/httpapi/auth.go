package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/gin-gonic/gin"

	"seckill/domain"
)

// buyer says who asks about an order: the header X-User-Id or the query's
// userId. It is believed as it stands, so something in front must have checked
// it. Errors: errUnauthenticated when it is missing; ErrInvalid.
func (a *API) buyer(c *gin.Context) (domain.BuyerID, error) {
	said := append(c.Request.Header.Values("X-User-Id"), c.QueryArray("userId")...)
	if len(said) == 0 {
		return "", errUnauthenticated
	}
	for _, text := range said {
		if text != said[0] {
			return "", domain.Invalid("userId", "is given twice, with different values")
		}
	}
	return domain.ParseBuyerID(said[0])
}

// grabber says who grabs: the buyer that the body names. Errors: ErrInvalid.
func (a *API) grabber(_ *gin.Context, inBody domain.BuyerID) (domain.BuyerID, error) {
	if inBody == "" {
		return "", domain.Invalid("userId", "is missing")
	}
	return inBody, nil
}

// token lets operators pass. Digests are compared, so that the time tells
// neither the token's length nor how much of a guess was right.
func (a *API) token(c *gin.Context) {
	scheme, said, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	want, got := sha256.Sum256([]byte(a.cfg.AdminToken)), sha256.Sum256([]byte(said))
	same := subtle.ConstantTimeCompare(want[:], got[:]) == 1
	if a.cfg.AdminToken == "" || !strings.EqualFold(scheme, "Bearer") || !same {
		c.Header("WWW-Authenticate", "Bearer")
		a.fail(c, errToken)
	}
}
