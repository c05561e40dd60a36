print Default/network/nosuch
